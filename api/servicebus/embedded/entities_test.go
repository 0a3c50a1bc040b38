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
		`{"Queues": [{"Name": "q", "Properties": {"LockDuration": "1 minute"}}]}`: `queue q: "1 minute": want a duration`,
		`{"Queues": [{"Name": ""}]}`: "queue",
		`{"Topics": [{"Name": "t", "Subscriptions": [{"Name": "s", "Rules": [{"Name": "r", "Properties": {"FilterType": "Sql"}}]}]}]}`: "rule r: filter type",
	} {
		entities, err := embedded.ReadEntities(strings.NewReader(text))
		require.NoError(t, err)
		_, err = embedded.Open(embedded.Options{Entities: entities})
		require.ErrorContains(t, err, says)
	}
	for _, text := range []string{`{`, `[]`, `{"UserConfig": {"Namespaces": []}}`} {
		_, err := embedded.ReadEntities(strings.NewReader(text))
		require.ErrorContains(t, err, "read entities")
	}
}
