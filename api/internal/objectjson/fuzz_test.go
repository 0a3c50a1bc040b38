package objectjson_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/internal/objectjson"
)

// FuzzParse parses arbitrary texts. Each event must be stored, ignored, or refused with a reason
// and a position.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		records(record("ObjectCreated:Put", "a+b%2B"), record("Other", "k"), `{}`), records(sqs("1", sns("2", records(record("ObjectRemoved:Delete", "k"))))),
		"[" + bridge("Object Created", `"key":"k","size":1`, `,"reason":"PutObject"`) + "," + grid("Microsoft.Storage.BlobRenamed", `"sourceUrl":"https://h/c/k"`) + "]",
		cloud("Microsoft.Storage.BlobCreated", `"sequencer":"1"`), `{"Messages":[{"Body":"[]"}]}`, `{"Sns":{"TopicArn":"","Message":"{}"}}`,
		nested("Records", 20),
		`[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":"1"}}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := objectjson.Parse(text, objectjson.Options{MaxEvents: 100})
		if err != nil {
			_, isTooMany := errors.AsType[*objectjson.TooManyError](err)
			require.True(t, isTooMany || errors.Is(err, objectjson.ErrNotJSON), err)
			return
		}
		outcome := make(map[int]bool)
		for i := range got.Events {
			e := &got.Events[i]
			require.NoError(t, e.Check())
			require.NotEmpty(t, e.Name.Key())
			outcome[e.Index] = true
		}
		for _, fault := range got.Faults {
			require.False(t, outcome[fault.Index], "two outcomes")
			outcome[fault.Index] = true
			require.NotEmpty(t, fault.Reason)
			require.NotEmpty(t, fault.Detail)
			require.True(t, fault.Pointer == "" || fault.Pointer[0] == '/', fault.Pointer)
		}
		require.Equal(t, got.Count, len(outcome)+got.Ignored)
		for index := range outcome {
			require.Less(t, index, got.Count)
		}
	})
}
