package api_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const peekRequest = "GET /v1/peek HTTP/1.1\r\nHost: hub\r\nX-Actor-Id: " + actor + "\r\n\r\n"

// postPayloads stores n events with a payload of 1 MB each, for one bundle.
func (f *hubFixture) postPayloads(n int) {
	f.t.Helper()
	payload := strings.Repeat("x", 1<<20-2)
	for i := range n {
		f.post(202, newEvent(i+1, "weight", 1024, "payload", payload))
	}
}

func TestAClientThatDisconnectsBeforeTheAnswerIsOnlyLogged(t *testing.T) {
	f := serve(t)
	waiting := make(chan struct{})
	f.store.next = func(ctx context.Context) error { close(waiting); <-ctx.Done(); return ctx.Err() }
	ctx, cancel := context.WithCancel(t.Context())
	req := f.newRequest("GET", "/v1/peek", nil).WithContext(ctx)
	go func() { <-waiting; cancel() }()
	_, err := f.client.Do(req)
	require.ErrorIs(t, err, context.Canceled)
	f.logs.wait(t, `"status":"aborted"`)
	require.Contains(t, f.logs.String(), "context canceled")
	require.NotContains(t, f.logs.String(), `"level":"ERROR"`)
}

func TestAClientThatDisconnectsInTheMiddleOfABodyIsOnlyLogged(t *testing.T) {
	f := serve(t)
	f.postPayloads(16) // the bundle far exceeds the buffers of a connection
	conn := f.dial()
	_, err := io.WriteString(conn, peekRequest)
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, conn.SetLinger(0))
	require.NoError(t, conn.Close())
	f.logs.wait(t, `"status":"aborted"`)
	require.NotContains(t, f.logs.String(), `"level":"ERROR"`)
	f.do("GET", "/v1/peek", "").wants(200) // the bundle is still open
}

func TestAClientThatDisconnectsWhileItSendsStoresNothing(t *testing.T) {
	for name, head := range map[string]string{
		"length stated": "Content-Length: 5000\r\n\r\n",
		"in chunks":     "Transfer-Encoding: chunked\r\n\r\nfff\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t)
			conn := f.dial()
			_, err := io.WriteString(conn, "POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\n"+head+array(newEvent(1)))
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			f.logs.wait(t, `"problem":"body-cut"`)
			f.do("GET", "/v1/peek", "").wants(204)
		})
	}
}

func TestABodyThatEndsEarlyStoresNothing(t *testing.T) {
	f := serve(t)
	f.raw("POST /v1/data-available HTTP/1.1\r\nHost: hub\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n"+array(newEvent(1)), true).problem(400, "body-cut")
	f.do("GET", "/v1/peek", "").wants(204)
}

func TestABundleOf51200EventsIsStreamed(t *testing.T) {
	f := serve(t)
	f.postMany(51_200)
	resp, err := f.client.Do(f.newRequest("GET", "/v1/peek", nil))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	require.Greater(t, resp.ContentLength, int64(9_000_000))
	decoder := json.NewDecoder(resp.Body)
	_, err = decoder.Token()
	require.NoError(t, err)
	var n int
	for ; decoder.More(); n++ {
		var e struct {
			ID       string
			Sequence int
		}
		require.NoError(t, decoder.Decode(&e))
		if e.ID != id(n+1) || e.Sequence != n+1 {
			t.Fatalf("event %d has id %s and sequence %d", n, e.ID, e.Sequence)
		}
	}
	require.Equal(t, 51_200, n)
}

// postMany stores n events without payloads.
func (f *hubFixture) postMany(n int) {
	f.t.Helper()
	for at := 0; at < n; at += 10_000 {
		var body strings.Builder
		for i := at; i < min(n, at+10_000); i++ {
			body.WriteString(",{\"id\":\"" + id(i+1) + `","recipient":"` + actor + `","origin":"TimeSeries","contentType":"c","documentType":"D","supportsBundling":true,"weight":1}`)
		}
		f.do("POST", "/v1/data-available", "["+body.String()[1:]+"]").wants(202)
	}
}
