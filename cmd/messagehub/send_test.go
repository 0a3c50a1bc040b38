package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// A requestRecorder records the bodies of all requests to a hub.
type requestRecorder struct {
	mu     sync.Mutex
	bodies []string
}

func (r *requestRecorder) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			panic(err)
		}
		r.mu.Lock()
		r.bodies = append(r.bodies, string(body))
		r.mu.Unlock()
		req.Body = io.NopCloser(strings.NewReader(string(body)))
		next.ServeHTTP(w, req)
	})
}

// failFirst answers the first requests with these statuses, and passes later
// requests to the hub.
func failFirst(header http.Header, statuses ...int) func(http.Handler) http.Handler {
	var mu sync.Mutex
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			status := 0
			if len(statuses) > 0 {
				status, statuses = statuses[0], statuses[1:]
			}
			mu.Unlock()
			if status == 0 {
				next.ServeHTTP(w, r)
				return
			}
			for name, values := range header {
				w.Header()[name] = values
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"title":"Busy","detail":"Later."}`)
		})
	}
}

func TestSend_KeepsTheOrderOverItsBatches(t *testing.T) {
	var r requestRecorder
	url := memoryHub(t, r.wrap)
	file := filepath.Join(t.TempDir(), "events.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(events(1, 3)+"\n\r\n"+events(4, 7)), 0o600))

	require.Equal(t, result{0, "7 accepted, 0 duplicates, 0 conflicts\n", ""}, messagehub(t, "", "send", "--url", url, "--batch", "3", file))
	var got []string
	for _, body := range r.bodies {
		var batch []struct{ ID string }
		require.NoError(t, json.Unmarshal([]byte(body), &batch))
		ids := ""
		for _, e := range batch {
			ids += e.ID[len(e.ID)-1:]
		}
		got = append(got, ids)
	}
	require.Equal(t, []string{"123", "456", "7"}, got)

	require.Equal(t, result{0, "0 accepted, 7 duplicates, 0 conflicts\n", ""}, messagehub(t, "", "send", "--url", url, file), "sending it again is safe")
}

func TestSend_LimitsTheBytesOfABatch(t *testing.T) {
	big := `,"payload":"` + strings.Repeat("x", 3<<20) + `"`
	b := newBatcher(strings.NewReader(event(1, big)+event(2, big)+event(3, big)), 1000)
	var got [][]int
	for {
		next, err := b.nextBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.LessOrEqual(t, len(next.body), hubclient.BatchBytes+1)
		require.True(t, json.Valid(next.body))
		got = append(got, next.lines)
	}
	require.Equal(t, [][]int{{1, 2}, {3}}, got)
}

func TestSend_ReportsBadLinesBeforeSendingTheirBatch(t *testing.T) {
	for _, tc := range []struct{ name, line, want string }{
		{"no JSON", "{hello}", "not JSON: invalid character 'h' looking for beginning of object key string"},
		{"no object", `["a"]`, "want one JSON object a line, {…}"},
		{"half an object", `{"id":`, "not JSON: the text ends inside the object"},
		{"something behind it", strings.TrimSpace(event(2, "")) + ",", "want nothing after the object"},
		{"an unknown field", event(2, `,"colour":"red"`), `unknown field "colour"; known are id, recipient, origin, contentType, documentType, supportsBundling, weight, payload`},
		{"nothing in it", "{}", "id: missing; recipient: missing; origin: missing; contentType: missing; documentType: missing; supportsBundling: missing; weight: missing"},
		{"an id that is none", strings.Replace(event(2, ""), "00000000-", "x-", 1), `event id: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "x-0000-4000-8000-000000000002"`},
		{"a number for a text", strings.Replace(event(2, ""), `"D18"`, "18", 1), "documentType: want a string, got number"},
		{"a weight of nothing", strings.Replace(event(2, ""), `"weight":1`, `"weight":0`, 1), "weight: want at least 1 (KB), got 0"},
		{"half a weight", strings.Replace(event(2, ""), `"weight":1`, `"weight":1.5`, 1), "weight: want a whole number of KB below 2^63, got number 1.5"},
		{"a weight beyond words", strings.Replace(event(2, ""), `"weight":1`, `"weight":9223372036854775808`, 1), "weight: want a whole number of KB below 2^63, got number 9223372036854775808"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r requestRecorder
			url := memoryHub(t, r.wrap)
			input := event(1, "") + strings.TrimSpace(tc.line) + "\n" + event(3, "")
			require.Equal(t, result{1, "0 accepted, 0 duplicates, 0 conflicts\n", "messagehub: line 2: " + tc.want + "\n"},
				messagehub(t, input, "send", "--url", url, "-"))
			require.Empty(t, r.bodies)
			require.Equal(t, result{1, "1 accepted, 0 duplicates, 0 conflicts\n", "messagehub: line 2: " + tc.want + "\n"},
				messagehub(t, input, "send", "--url", url, "--batch", "1", "-"), "batches before it are sent")
		})
	}
}

func TestSend_ReportsTheBadLinesOfABatchUpToALimit(t *testing.T) {
	got := messagehub(t, event(1, "")+"x\n"+event(2, "")+"y\n", "send", "-")
	require.Equal(t, "messagehub: line 2: want one JSON object a line, {…}\nmessagehub: line 4: want one JSON object a line, {…}\n", got.err)
	got = messagehub(t, strings.Repeat("x\n", 1000), "send", "-")
	require.Equal(t, maxFaultsShown, strings.Count(got.err, "\n"))
}

func TestSend_StopsReadingALineThatIsTooLong(t *testing.T) {
	b := newBatcher(io.MultiReader(strings.NewReader(event(1, "")), endless{}), 10)
	_, err := b.nextBatch()
	require.EqualError(t, err, "line 2: longer than 32 MB; want one event a line")
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", len(p))), nil }

func TestSend_FailsIfItsInputIsInterrupted(t *testing.T) {
	b := newBatcher(io.MultiReader(strings.NewReader(event(1, "")), iotest.ErrReader(io.ErrClosedPipe)), 10)
	_, err := b.nextBatch()
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestSend_AcceptsALastLineWithoutALineEnd(t *testing.T) {
	url := memoryHub(t, nil)
	require.Equal(t, result{0, "2 accepted, 0 duplicates, 0 conflicts\n", ""}, messagehub(t, strings.TrimSpace(events(1, 2)), "send", "--url", url, "-"))
}

func TestSend_ReportsRejectedEventsByLine(t *testing.T) {
	url := memoryHub(t, nil)
	input := event(1, "") + "\n" + strings.Replace(event(2, ""), "Charges", "Weather", 1) + event(3, "")
	require.Equal(t, result{
		1, "0 accepted, 0 duplicates, 0 conflicts\n",
		"line 3: origin: \"Weather\" is unknown here; known are Aggregations, Charges, MarketRoles, MeteringPoints, TimeSeries\n" +
			"messagehub: the hub refused lines 1 to 4, and stored no event of them: The request is not valid (400): Nothing was stored, because of the fault in errors. Correct it and send the request again.\n",
	}, messagehub(t, input, "send", "--url", url, "-"))
}

func TestSend_ReportsAConflictAndStoresTheOtherEvents(t *testing.T) {
	url := memoryHub(t, nil)
	messagehub(t, event(2, ""), "send", "--url", url, "-")
	input := event(1, "") + event(2, `,"payload":1`) + event(3, "")
	require.Equal(t, result{
		1, "2 accepted, 0 duplicates, 1 conflicts\n",
		"line 2: stored before with other content\nmessagehub: not every event was accepted; the lines above say which, and why\n",
	}, messagehub(t, input, "send", "--url", url, "-"))
}

func TestSend_RetriesWhenTheHubIsBusy(t *testing.T) {
	now := http.Header{"Retry-After": {"0"}}
	url := memoryHub(t, failFirst(now, 429, 503, 502, 504))
	got := messagehub(t, event(1, ""), "send", "--url", url, "-")
	require.Equal(t, 0, got.status)
	require.Equal(t, "1 accepted, 0 duplicates, 0 conflicts\n", got.out)
	require.Equal(t, 4, strings.Count(got.err, "trying again in "))
	require.Contains(t, got.err, "ms: Busy (429): Later.\n")
}

func TestSend_GivesUpOnABusyHubInTime(t *testing.T) {
	url := memoryHub(t, failFirst(http.Header{"Retry-After": {"3600"}}, 503))
	got := messagehub(t, event(1, ""), "send", "--url", url, "--timeout", "3s", "-")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "messagehub: gave up on a batch after 3s: Busy (503): Later.\n")
}

func TestSend_DoesNotRetryAfterAStatus500(t *testing.T) {
	var r requestRecorder
	url := memoryHub(t, func(next http.Handler) http.Handler { return r.wrap(failFirst(nil, 500)(next)) })
	got := messagehub(t, events(1, 2), "send", "--url", url, "--batch", "1", "-")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "stored no event of them: Busy (500): Later.")
	require.Len(t, r.bodies, 1)
}

func TestSend_RepeatsARequestWhoseAnswerIsLost(t *testing.T) {
	calls := 0
	url := memoryHub(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls == 2 {
				next.ServeHTTP(discard{}, r) // the hub stores the events, but its response is lost
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	got := messagehub(t, events(1, 2), "send", "--url", url, "--batch", "1", "-")
	require.Equal(t, 0, got.status, got.err)
	require.Equal(t, "1 accepted, 1 duplicates, 0 conflicts\n", got.out)
	require.Contains(t, got.err, "no answer from the hub at "+url)
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

func TestSend_PrintsProgressAsPlainLines(t *testing.T) {
	url := memoryHub(t, nil)
	require.Equal(t, result{0, "20500 accepted, 0 duplicates, 0 conflicts\n", "sent 10000 events\nsent 20000 events\n"},
		messagehub(t, events(1, 20_500), "send", "--url", url, "-"))
}
