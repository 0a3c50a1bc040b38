package embedded_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

func TestReadEntities_ReadsTheConfigOfMicrosoftsEmulator(t *testing.T) {
	file, err := os.Open("internal/clientsuite/testdata/node/entities.json")
	require.NoError(t, err)
	defer file.Close()
	entities, err := embedded.ReadEntities(file)
	require.NoError(t, err)
	n := openNamespace(t, embedded.Options{Entities: entities})
	rules, err := newAdminClient(t, n).GetRule(t.Context(), "news", "red", "red", nil)
	require.NoError(t, err)
	require.Equal(t, "red", rules.Name)
	require.EqualValues(t, 6, n.Stats().Entities)
}

func TestReadEntities_RefusesInvalidEntities(t *testing.T) {
	for text, says := range map[string]string{
		`{"Queues": [{"Name": "q", "Properties": {"LockDuration": "1 minute"}}]}`: `queue q: LockDuration "1 minute": want a duration`,
		`{"Queues": [{"Name": ""}]}`: "queue",
		`{"Topics": [{"Name": "t", "Subscriptions": [{"Name": "s", "Rules": [{"Name": "r", "Properties": {"FilterType": "Sql"}}]}]}]}`: "rule r: filter type",
	} {
		entities, err := embedded.ReadEntities(strings.NewReader(text))
		require.NoError(t, err)
		_, err = embedded.Open(embedded.Options{Entities: entities})
		require.ErrorContains(t, err, says)
	}
	for text, says := range map[string]string{
		"{\"Queues\": [{\"Name\": \"q\"},\n {\"Name\": \"r\", \"Properties\": {\"LokDuration\": \"PT1M\"}}]}": "read entities: line 2, Queues[1].Properties.LokDuration: no such key; known are DeadLetteringOnFilterEvaluationExceptions, ",
		`{"UserConfig": {"Namespaces": [{"Topic": []}]}}`:                                                     "line 1, UserConfig.Namespaces[0].Topic: no such key; known are Name, Queues, Topics",
		`{"Queue": []}`: "line 1, Queue: no such key; known are Name, Queues, Topics, UserConfig",
		`{"Queues": [{"Name": "q", "Properties": {"MaxDeliveryCount": "many"}}]}`: "Queues[0].Properties.MaxDeliveryCount: want a whole number of at least 0",
		`{"Queues": [{"Name": "q", "Properties": {"MaxDeliveryCount": -1}}]}`:     "Queues[0].Properties.MaxDeliveryCount: want a whole number of at least 0",
		`{"Queues": [{"Name": "q", "Properties": {"RequiresSession": "yes"}}]}`:   "Queues[0].Properties.RequiresSession: want true or false",
		`{"Queues": {"Name": "q"}}`: "line 1, Queues: want a list",
		`{"Queues": [{"Name": 7}]}`: "Queues[0].Name: want a text",
		`{"Queues": [`:              "line 1, Queues: not JSON: the text ends too early",
		`{"Queues": []} {}`:         "line 1: want nothing after the first value",
	} {
		_, err := embedded.ReadEntities(strings.NewReader(text))
		require.ErrorContains(t, err, says, text)
	}
	entities, err := embedded.ReadEntities(strings.NewReader(`{"userConfig": {"logging": {"Type": "File"}, "namespaces": [{"name": "n", "queues": [{"name": "q", "properties": null}]}]}}`))
	require.NoError(t, err, "keys are compared without case, as Microsoft's emulator does")
	require.Equal(t, "q", entities.Queues[0].Name)
	for _, text := range []string{`{`, `[]`, `{"UserConfig": {"Namespaces": []}}`} {
		_, err := embedded.ReadEntities(strings.NewReader(text))
		require.ErrorContains(t, err, "read entities")
	}
}
