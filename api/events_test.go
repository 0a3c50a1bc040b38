package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/domain/publish"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// brokenStreams is a store of streams that fails after a number of appends.
type brokenStreams struct {
	repository.Streams
	left int // number of appends that succeed; if negative, all appends succeed
	err  error
}

func (s *brokenStreams) Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]repository.Appended, error) {
	if s.left == 0 {
		return nil, s.err
	}
	s.left--
	return s.Streams.Append(ctx, stream, messages)
}

// withEvents configures a server with streams in memory.
func withEvents(streams *brokenStreams) func(*api.Options, *hub.Options) {
	streams.Streams = memory.NewStreams(time.Hour, time.Now)
	return func(o *api.Options, _ *hub.Options) {
		o.Events = publish.New(streams, func(domain.StreamName, []domain.Message, []repository.Appended) {})
	}
}

// entries returns the entries of a topic.
func (s *brokenStreams) entries(t *testing.T, topic string) []repository.Entry {
	t.Helper()
	stream, err := domain.ParseTopic(topic)
	require.NoError(t, err)
	found, err := s.Read(t.Context(), stream, domain.Position{}, 10_000)
	require.NoError(t, err)
	return found.Entries
}

const (
	structured = "application/cloudevents+json"
	batch      = "application/cloudevents-batch+json"
)

func cloudEvent(id string, fields ...string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"/s","type":"t"%s}`, id, strings.Join(append([]string{""}, fields...), ","))
}

func TestEvents_AreAcceptedInEachMode(t *testing.T) {
	streams := &brokenStreams{left: -1}
	f := serve(t, withEvents(streams))
	require.JSONEq(t, `{"accepted":1,"duplicates":0}`, f.do("POST", "/v1/events", cloudEvent("1", `"data": {"a" : [1, 2]}`, `"flag":true`, `"n":7`, `"gone":null`), "Content-Type", structured).wants(202).body)
	require.JSONEq(t, `{"accepted":2,"duplicates":1}`, f.do("POST", "/v1/events?topic=events", "["+strings.Join([]string{
		cloudEvent("1", `"n":7`, `"flag":"true"`, `"data":{"a":[1,2]}`),
		cloudEvent("2", `"datacontenttype":"text/plain"`, `"data":"hé"`), cloudEvent("3", `"data_base64":"AP8="`, `"datacontenttype":"a/b"`),
	}, ",")+"]", "Content-Type", batch+"; charset=UTF-8").wants(202).body)
	binary := []string{"Ce-Specversion", "1.0", "Ce-Id", "4", "Ce-Source", "/s", "Ce-Type", "t", "Ce-Subject", "Euro%20%E2%82%AC", "Content-Type", "text/plain"}
	require.JSONEq(t, `{"accepted":1,"duplicates":0}`, f.do("POST", "/v1/events", "text", binary...).wants(202).body)
	require.JSONEq(t, `{"accepted":0,"duplicates":1}`, f.do("POST", "/v1/events", "text", binary...).wants(202).body)
	require.JSONEq(t, `{"accepted":1,"duplicates":0}`, f.do("POST", "/v1/events?topic=other", "text", binary...).wants(202).body, "topics are apart")

	all := streams.entries(t, "events")
	require.Len(t, all, 4)
	require.Equal(t, domain.Message{
		ID: "/s 1", Payload: []byte(`{"a":[1,2]}`),
		Attributes: map[string]string{"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "flag": "true", "n": "7"},
	}, all[0].Message)
	require.Equal(t, "hé", string(all[1].Payload))
	require.Equal(t, "text/plain", all[1].ContentType)
	require.Equal(t, []byte{0, 255}, all[2].Payload)
	require.Equal(t, "text", string(all[3].Payload))
	require.Equal(t, "Euro €", all[3].Attributes["subject"])
	require.Len(t, streams.entries(t, "other"), 1)
}

func TestABadEvent_IsNamedByItsPointerAndNothingIsStored(t *testing.T) {
	streams := &brokenStreams{left: -1}
	f := serve(t, withEvents(streams))
	for body, pointer := range map[string]string{
		`{"specversion":"1.0","id":"1","source":"/s"}`:                         "/type",
		`{"id":"1","source":"/s","type":"t"}`:                                  "/specversion",
		cloudEvent(""):                                                         "/id",
		cloudEvent("1", `"specversion":"1.0"`):                                 "/specversion",
		cloudEvent("1", `"Upper":"a"`):                                         "/Upper",
		cloudEvent("1", `"time":"yesterday"`):                                  "/time",
		cloudEvent("1", `"ext":{"a":1}`):                                       "/ext",
		cloudEvent("1", `"ext":1.5`):                                           "/ext",
		cloudEvent("1", `"subject":7`):                                         "/subject",
		cloudEvent("1", `"data_base64":"*"`):                                   "/data_base64",
		cloudEvent("1", `"data_base64":""`, `"data":1`):                        "/data_base64",
		cloudEvent("1", `"data":1`, `"datacontenttype":"text/plain"`):          "/data",
		cloudEvent("1", `"ext":"`+strings.Repeat("x", 10_000)+`"`):             "",
		cloudEvent("1", `"data":"`+strings.Repeat("x", domain.MaxPayload)+`"`): "",
		`7`: "",
	} {
		a := f.do("POST", "/v1/events", body, "Content-Type", structured)
		a.problem(400, "invalid")
		errors, _ := decoded(t, a.body)["errors"].([]any)
		require.Len(t, errors, 1, "%.100s", body)
		require.Equal(t, pointer, errors[0].(map[string]any)["pointer"], "%.100s", body)
	}
	a := f.do("POST", "/v1/events", "["+cloudEvent("1")+","+cloudEvent("", `"time":1`)+"]", "Content-Type", batch)
	a.problem(400, "invalid")
	require.Contains(t, a.body, `"pointer":"/1/id"`)
	require.Contains(t, a.body, `"pointer":"/1/time"`)
	f.do("POST", "/v1/events", cloudEvent("1"), "Content-Type", batch).problem(400, "invalid")
	f.do("POST", "/v1/events", `{"specversion":`, "Content-Type", structured).problem(400, "not-json")
	f.do("POST", "/v1/events", "", "Content-Type", structured).problem(400, "not-json")
	f.do("POST", "/v1/events", cloudEvent("1"), "Content-Type", "application/json").problem(415, "unsupported-media-type")
	f.do("POST", "/v1/events", cloudEvent("1"), "Content-Type", structured+"; charset=latin1").problem(415, "unsupported-media-type")
	f.do("POST", "/v1/events", "a", "Content-Type", "application/cloudevents+avro", "Ce-Specversion", "1.0").problem(415, "unsupported-media-type")
	f.do("POST", "/v1/events", "a", "Content-Encoding", "gzip", "Content-Type", structured).problem(415, "unsupported-media-type")
	f.do("POST", "/v1/events?topic=a+b", cloudEvent("1"), "Content-Type", structured).problem(400, "invalid")
	f.do("POST", "/v1/events?x=y", cloudEvent("1"), "Content-Type", structured).problem(400, "invalid")
	f.do("POST", "/v1/events", "["+strings.Repeat(cloudEvent("1")+",", 1000)+cloudEvent("1")+"]", "Content-Type", batch).problem(413, "too-many-events")
	f.do("POST", "/v1/events", strings.Repeat(" ", 9<<20), "Content-Type", batch).problem(413, "body-too-large")
	f.do("POST", "/v1/events", "a", "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/s", "Ce-Type", "%zz").problem(400, "invalid")
	require.Empty(t, streams.entries(t, "events"))
}

func TestAnEventWithOtherContent_IsAConflictAndTheOthersAreStored(t *testing.T) {
	streams := &brokenStreams{left: -1}
	f := serve(t, withEvents(streams))
	f.do("POST", "/v1/events", cloudEvent("1", `"data":1`), "Content-Type", structured).wants(202)
	a := f.do("POST", "/v1/events", "["+cloudEvent("2")+","+cloudEvent("1", `"data":2`)+","+cloudEvent("2")+","+cloudEvent("2", `"data":3`)+"]", "Content-Type", batch)
	a.problem(409, "already-stored")
	problem := decoded(t, a.body)
	require.Equal(t, []any{1.0, 1.0}, []any{problem["accepted"], problem["duplicates"]})
	require.Contains(t, a.body, `"pointer":"/1/id"`)
	require.Contains(t, a.body, `"pointer":"/3/id"`)
	require.Len(t, streams.entries(t, "events"), 2)
}

func TestPostEvents_ReportsAThrottledStoreAsUnavailable(t *testing.T) {
	for _, tc := range []struct {
		err     error
		left    int
		problem string
		detail  string
	}{
		{domain.Errorf(domain.Busy, "429 from secret"), 0, "unavailable", "has not taken effect"},
		{domain.Errorf(domain.Unavailable, "503 from secret"), 0, "unavailable", "has not taken effect"},
		{domain.Errorf(domain.Uncertain, "408 from secret"), 0, "uncertain", "may or may not"},
		{domain.Errorf(domain.Busy, "429 from secret"), 1, "unavailable", "60 are, the others may be"},
	} {
		streams := &brokenStreams{left: tc.left, err: tc.err}
		f := serve(t, withEvents(streams))
		var events []string
		for i := range 70 {
			events = append(events, cloudEvent(fmt.Sprint(i)))
		}
		body := "[" + strings.Join(events, ",") + "]"
		a := f.do("POST", "/v1/events", body, "Content-Type", batch)
		a.problem(http.StatusServiceUnavailable, tc.problem)
		require.NotEmpty(t, a.header.Get("Retry-After"))
		require.Contains(t, a.body, tc.detail)
		require.NotContains(t, a.body, "secret")
		streams.left = -1
		require.JSONEq(t, fmt.Sprintf(`{"accepted":%d,"duplicates":%d}`, 70-60*tc.left, 60*tc.left), f.do("POST", "/v1/events", body, "Content-Type", batch).wants(202).body)
		require.Len(t, streams.entries(t, "events"), 70)
	}
}

func TestEventsWithoutAStore_AreNotProvisioned(t *testing.T) {
	serve(t).do("POST", "/v1/events", cloudEvent("1"), "Content-Type", structured).problem(503, "not-provisioned")
}
