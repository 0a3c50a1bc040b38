package failsafe_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/api/broker/failsafe"
	"github.com/messagehub/messagehub/domain"
)

// serve returns a client of a hub for which handle responds.
func serve(t *testing.T, handle http.HandlerFunc) *failsafe.Client {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return connect(t, s.URL+"/hubs")
}

func connect(t *testing.T, url string) *failsafe.Client {
	t.Helper()
	c, err := brokerclient.New(brokerclient.Options{URL: url, Credentials: brokerclient.Credentials{AdminToken: "of-operators"}, Budget: -1})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return failsafe.NewClient(c)
}

func TestAClient_ListsAndRetriggersJobs(t *testing.T) {
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
			_, _ = io.WriteString(w, `{"jobs":[{"channel":"a","message":"m0.0","consumer":"b"}],"next":"/broker/overdue?delay=2s&first=x"}`)
		}
	})
	p, err := c.Overdue(t.Context(), 2*time.Second, "")
	require.NoError(t, err)
	require.Equal(t, failsafe.Page{Jobs: []failsafe.Job{{Channel: "a", Message: "m0.0", Consumer: "b"}}, Next: "x"}, p)
	require.NoError(t, c.Retrigger(t.Context(), p.Jobs[0]))
	p, err = c.Overdue(t.Context(), 2*time.Second, p.Next)
	require.NoError(t, err)
	require.Zero(t, p)
	require.Equal(t, []string{
		"GET /hubs/broker/overdue?delay=2s", "POST /hubs/broker/channel/a/message/m0.0/job/b/re-trigger", "GET /hubs/broker/overdue?delay=2s&first=x",
	}, seen)
}

func TestAClient_ClassifiesFailures(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		header []string
		kind   domain.Kind
		text   string
		wait   time.Duration
	}{
		{name: "another token", status: 403, kind: domain.Unavailable, text: "need the same admin.token"},
		{name: "no token", status: 401, kind: domain.Unavailable, text: "need the same admin.token"},
		{name: "an older hub", status: 404, kind: domain.NotFound},
		{name: "nothing to do", status: 409, kind: domain.Conflict},
		{name: "no such page", status: 400, kind: domain.Invalid},
		{name: "a redirect", status: 307, header: []string{"Location", "https://elsewhere.example/"}, kind: domain.Unavailable, text: "set broker.retrigger-url"},
		{name: "a busy hub", status: 503, header: []string{"Retry-After", "7"}, kind: domain.Unavailable, wait: 7 * time.Second},
		{name: "a hub that fails", status: 500, kind: domain.Unavailable},
		{name: "what is no JSON", status: 200, kind: domain.Unavailable, text: "cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requests := 0
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests++
				if tc.header != nil {
					w.Header().Set(tc.header[0], tc.header[1])
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, "<html>")
			})
			_, err := c.Overdue(t.Context(), time.Second, "")
			require.Equal(t, tc.kind, domain.KindOf(err), err)
			require.ErrorContains(t, err, tc.text)
			require.NotContains(t, err.Error(), "of-operators")
			require.Equal(t, 1, requests)
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

func TestAClient_ReportsAnUnreachableHub(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := connect(t, s.URL).Overdue(t.Context(), time.Second, "")
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
}
