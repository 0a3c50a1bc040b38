package hubclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/hubclient"
)

const body = `[{"id":"1"},{"id":"2"}]`

func (h *faultyHub) read() (string, error) {
	b, err := h.client.Peek(h.t.Context(), actor, hubclient.PeekOptions{})
	if err != nil {
		return "", err
	}
	defer b.Close()
	text, err := io.ReadAll(b)
	return string(text), err
}

func TestBundle_FetchesTheRestAfterAnInterruption(t *testing.T) {
	h := newFaultyHub(t,
		bundle("b", body, 5),
		func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "bytes=5-", r.Header.Get("Range"))
			require.Equal(t, `"t"`, r.Header.Get("If-Range"))
			require.Equal(t, actor, r.Header.Get("X-Actor-Id"))
			bundle("b", body, 9)(w, r)
		},
		problem(503, "Retry-After", "7"),
		bundle("b", body, len(body)))
	text, err := h.read()
	require.NoError(t, err)
	require.Equal(t, body, text)
	require.Equal(t, []string{"GET /v1/peek", "GET /v1/bundles/b", "GET /v1/bundles/b", "GET /v1/bundles/b"}, h.requests())
	require.GreaterOrEqual(t, h.clock.Elapsed(), 7*time.Second)
}

func TestBundle_SkipsReceivedBytesOfAWholeBody(t *testing.T) {
	h := newFaultyHub(t, bundle("b", body, 5), func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Range") // a proxy may remove this header
		bundle("b", body, len(body))(w, r)
	})
	text, err := h.read()
	require.NoError(t, err)
	require.Equal(t, body, text)
}

func TestBundle_FailsIfTheRestIsOfAnotherBody(t *testing.T) {
	for name, tc := range map[string]struct {
		next hubStep
		want string
	}{
		"other tag": {taggedBundle("b", `"u"`, body, len(body)), "another body"},
		"gone":      {problem(410), "(410)"},
		"dequeued":  {problem(404), "(404)"},
		"longer": {func(w http.ResponseWriter, r *http.Request) {
			bundle("b", body+" ", len(body)+1)(w, r)
		}, "want 18"},
		"other range": {func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=4-")
			bundle("b", body, len(body))(w, r)
		}, "not with what follows byte 5"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFaultyHub(t, bundle("b", body, 5), tc.next)
			text, err := h.read()
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "after 5 of 23 bytes")
			require.Equal(t, body[:5], text)
		})
	}
}

func TestBundle_WithoutATagIsNotResumed(t *testing.T) {
	h := newFaultyHub(t, taggedBundle("b", "", body, 5))
	_, err := h.read()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestBundle_FailsIfNothingArrivesWithinTheBudget(t *testing.T) {
	h := newFaultyHubWith(t, hubclient.Options{Resume: 10 * time.Second}, bundle("b", body, 5), problem(503, "Retry-After", "5"), problem(429, "Retry-After", "6"))
	_, err := h.read()
	require.True(t, isStatus(err, 429))
	require.ErrorContains(t, err, "sent 3 times")
	require.Less(t, h.clock.Elapsed(), 10*time.Second, "a pause that is too long is not begun")
}

func TestBundle_EndsItsRequestIfNothingArrives(t *testing.T) {
	stall := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "23")
		w.Header().Set("MessageId", "b")
		w.Header().Set("ETag", `"t"`)
		_, _ = w.Write([]byte(body[:5]))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	h := newFaultyHub(t, stall, bundle("b", body, len(body)))
	b := h.peek()
	first := make([]byte, 5)
	_, err := io.ReadFull(b, first)
	require.NoError(t, err)
	h.clock.expireNext()
	rest, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Equal(t, body, string(first)+string(rest))
}

func TestPeek_RejectsAResponseThatIsNoBundle(t *testing.T) {
	for name, tc := range map[string]struct {
		answer hubStep
		want   string
	}{
		"no id": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, "not a bundle"},
		"no size": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("MessageId", "b")
			_ = http.NewResponseController(w).Flush()
		}, "Content-Length"},
		"gzip": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("MessageId", "b")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte("x"))
		}, "not a bundle"},
		"too long": {bundle("b", body, len(body)), "want up to 22; raise Options.MaxBundle"},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, `Found (302): The answer redirects to "/elsewhere"`},
		"page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("<html>"))
		}, `Forbidden (403): The answer is no problem document; is this a hub? It begins "<html>".`},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFaultyHubWith(t, hubclient.Options{MaxBundle: int64(len(body)) - 1}, tc.answer)
			_, err := h.read()
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestPeek_HonoursRetryAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		headers []string
		want    time.Duration
	}{
		"seconds": {[]string{"Retry-After", "9"}, 9 * time.Second},
		// A date in Retry-After is compared with the Date of the response, because the clock of
		// this machine may be wrong by years.
		"date":      {[]string{"Retry-After", "Tue, 01 Jan 2019 00:00:09 GMT", "Date", "Tue, 01 Jan 2019 00:00:00 GMT"}, 9 * time.Second},
		"past":      {[]string{"Retry-After", "Tue, 01 Jan 2019 00:00:00 GMT", "Date", "Tue, 01 Jan 2019 00:00:09 GMT"}, 0},
		"negative":  {[]string{"Retry-After", "-9"}, 0},
		"for years": {[]string{"Retry-After", "9999999999999"}, 0},
		"nonsense":  {[]string{"Retry-After", "soon"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFaultyHub(t, problem(503, tc.headers...), noData)
			_, err := h.read()
			require.ErrorIs(t, err, hubclient.ErrNoData)
			require.Equal(t, []time.Duration{tc.want + 50*time.Millisecond}, h.clock.pauses(), "and half of the first pause")
		})
	}
}

func TestPeek_FailsImmediatelyAfterAPermanentError(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404, 409, 410, 500} {
		h := newFaultyHub(t, problem(status))
		_, err := h.read()
		require.True(t, isStatus(err, status))
		require.ErrorContains(t, err, "A detail.")
	}
}

func TestPeek_RepeatsARequestWithoutAResponse(t *testing.T) {
	h := newFaultyHub(t, dropConnection, dropConnection, bundle("b", body, len(body)))
	text, err := h.read()
	require.NoError(t, err)
	require.Equal(t, body, text)
	require.Equal(t, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond}, h.clock.pauses(), "pauses grow")
}

func TestRequests_CarryTheTokenOfTheSource(t *testing.T) {
	tokens := []string{"one", "two"}
	check := func(want string, then hubStep) hubStep {
		return func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "Bearer "+want, r.Header.Get("Authorization"))
			then(w, r)
		}
	}
	h := newFaultyHubWith(t, hubclient.Options{Token: func(context.Context) (token string, err error) {
		token, tokens = tokens[0], tokens[1:]
		return token, nil
	}}, check("one", problem(503)), check("two", noData))
	_, err := h.read()
	require.ErrorIs(t, err, hubclient.ErrNoData)

	broken := errors.New("the issuer is away")
	_, err = h.client.With(func(o *hubclient.Options) {
		o.Token = func(context.Context) (string, error) { return "", broken }
	}).Queues(t.Context(), actor)
	require.ErrorIs(t, err, broken)
	require.Len(t, h.requests(), 2, "nothing is sent without it")
}

func TestNew_RefusesAnInvalidURL(t *testing.T) {
	for _, url := range []string{"", "hub.example", "ftp://hub.example", "https://", "https://hub.example?x", "https://kim:s3cret@hub.example#x", "http://kim:s3cret@[", "%"} {
		_, err := hubclient.New(hubclient.Options{URL: url})
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "s3cret")
	}
}
