package objectclient

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMessage_HasTheFormOfS3(t *testing.T) {
	text := Message("readings", Event{Key: "a/b", Sequencer: 7}, Event{Key: "c", Deleted: true, Sequencer: 8})
	var m struct {
		Records []struct {
			EventTime time.Time
			EventName string
			S3        struct {
				Bucket struct{ Name string }
				Object struct {
					Key, ETag, Sequencer string
					Size                 int64
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &m))
	require.Len(t, m.Records, 2)
	created, deleted := m.Records[0], m.Records[1]
	require.Equal(t, "ObjectCreated:Put", created.EventName)
	require.Equal(t, "readings", created.S3.Bucket.Name)
	require.Equal(t, "a/b", created.S3.Object.Key)
	require.Equal(t, "000000000000000007", created.S3.Object.Sequencer)
	require.Positive(t, created.S3.Object.Size)
	require.Len(t, created.S3.Object.ETag, 32)
	require.Equal(t, Began.Add(7*time.Millisecond), created.EventTime)
	require.Equal(t, "ObjectRemoved:Delete", deleted.EventName)
	require.Equal(t, "c", deleted.S3.Object.Key)
	require.Zero(t, deleted.S3.Object.Size)
	require.InDelta(t, 1_500, len(text), 300, "two events of the size that S3 gives them")
}

func TestClient_FailsUnlessEachEventIsStored(t *testing.T) {
	for answer, want := range map[string]string{
		`{"accepted":1,"duplicates":2,"ignored":0,"refused":[]}`:        "",
		`{"accepted":1,"duplicates":0,"ignored":1,"refused":[]}`:        "1 are ignored",
		`{"accepted":1,"duplicates":0,"ignored":0,"tooOld":1}`:          "1 too old",
		`{"accepted":1,"duplicates":0,"ignored":0,"refused":[{},{}]}`:   "2 refused",
		`{"type":"unavailable","status":503}`:                           "503",
		`{"accepted":1,"duplicates":2,"ignored":0,"refused":[]} broken`: "invalid character",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Header.Get("Authorization") != "Bearer token" || string(body) != "message" || want == "503" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = io.WriteString(w, answer)
		}))
		c := &Client{HTTP: server.Client(), URL: server.URL, Token: "token"}
		counts, err := c.Send(t.Context(), []byte("message"))
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, Counts{Accepted: 1, Duplicates: 2}, counts)
		} else {
			require.ErrorContains(t, err, want)
		}
		server.Close()
	}
}
