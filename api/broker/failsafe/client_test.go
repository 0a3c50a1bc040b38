package failsafe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/broker/failsafe"
	"github.com/messagehub/messagehub/domain"
)

// serve returns a client of a hub that answers as a test says, below a prefix.
func serve(t *testing.T, handle http.HandlerFunc) *failsafe.Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	client := s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return failsafe.NewClient(s.URL+"/hub/", "of-operators", client.Do)
}

func TestAClient_ListsAndRetriggersByTheAddress(t *testing.T) {
	var seen []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, "of-operators", r.Header.Get("X-Broker-Admin-Token"))
		seen = append(seen, r.Method+" "+r.URL.String())
		switch {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusAccepted)
		case r.URL.Query().Has("first"):
			_, _ = io.WriteString(w, `{"jobs":[]}`)
		default:
			_, _ = io.WriteString(w, `{"jobs":[{"status":"In-flight","retriggerUrl":"/broker/a/re-trigger"}],"next":"/broker/overdue?delay=2s&first=x","more":1}`)
		}
	})
	p, err := c.Overdue(t.Context(), 2*time.Second, "")
	require.NoError(t, err)
	require.Equal(t, failsafe.Page{Jobs: []failsafe.Job{{Retrigger: "/broker/a/re-trigger"}}, Next: "/broker/overdue?delay=2s&first=x"}, p)
	require.NoError(t, c.Retrigger(t.Context(), p.Jobs[0]))
	p, err = c.Overdue(t.Context(), 2*time.Second, p.Next)
	require.NoError(t, err)
	require.Zero(t, p)
	require.Equal(t, []string{"GET /hub/broker/overdue?delay=2s", "POST /hub/broker/a/re-trigger", "GET /hub/broker/overdue?delay=2s&first=x"}, seen)
}

func TestAClient_SaysWhatAFailureMeans(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		header []string
		body   string
		kind   domain.Kind
		text   string
		wait   time.Duration
	}{
		{name: "another token", status: 403, kind: domain.Unavailable, text: "all nodes behind the address need the same admin.token"},
		{name: "no token", status: 401, kind: domain.Unavailable, text: "refuses the token"},
		{name: "an older hub", status: 404, body: `{"detail":"no such route"}`, kind: domain.NotFound, text: "status 404: no such route"},
		{name: "nothing to do", status: 409, kind: domain.Conflict},
		{name: "no such page", status: 400, kind: domain.Invalid},
		{name: "a redirect", status: 307, header: []string{"Location", "https://elsewhere.example/"}, kind: domain.Unavailable, text: "set broker.retrigger-url"},
		{name: "a busy hub", status: 503, header: []string{"Retry-After", "7"}, kind: domain.Unavailable, wait: 7 * time.Second},
		{name: "a hub that fails", status: 500, body: "<html>", kind: domain.Unavailable, text: "status 500: <html>"},
		{name: "what is no JSON", status: 200, body: "<html>", kind: domain.Unavailable, text: "read the answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.header != nil {
					w.Header().Set(tc.header[0], tc.header[1])
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			_, err := c.Overdue(t.Context(), time.Second, "")
			require.Equal(t, tc.kind, domain.KindOf(err), err)
			require.ErrorContains(t, err, tc.text)
			require.NotContains(t, err.Error(), "of-operators")
			wait := new(failsafe.WaitError)
			if tc.wait > 0 {
				require.ErrorAs(t, err, &wait)
				require.Equal(t, tc.wait, wait.For)
			} else {
				require.NotErrorAs(t, err, &wait)
			}
		})
	}
}

func TestAClient_SendsTheTokenToNoOtherAddress(t *testing.T) {
	requests := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		_, _ = io.WriteString(w, `{"jobs":[{"retriggerUrl":"@elsewhere.example/"}],"next":"https://elsewhere.example/"}`)
	})
	p, err := c.Overdue(t.Context(), time.Second, "")
	require.NoError(t, err)
	require.ErrorContains(t, c.Retrigger(t.Context(), p.Jobs[0]), "none of the broker")
	_, err = c.Overdue(t.Context(), time.Second, p.Next)
	require.ErrorContains(t, err, "none of the broker")
	require.Equal(t, 1, requests)
}

func TestAClient_ReportsAHubThatIsNotThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := failsafe.NewClient(s.URL, "x", http.DefaultClient.Do).Overdue(t.Context(), time.Second, "")
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	require.ErrorContains(t, err, "the hub does not answer")
}
