package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

// A loginHub is a server without a network, whose clock the test sets.
type loginHub struct {
	*hubFixture
	t       *testing.T
	now     time.Time
	metrics *prometheus.Registry
}

func newLoginHub(t *testing.T, change ...func(*api.Options, *hub.Options)) *loginHub {
	t.Helper()
	d := &loginHub{t: t, now: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC), metrics: prometheus.NewRegistry()}
	d.hubFixture = newFixture(t, append(change, func(o *api.Options, _ *hub.Options) {
		o.Clock, o.Registerer = func() time.Time { return d.now }, d.metrics
	})...)
	return d
}

// login requests a queue from an address. If authorization is "", the request has no header
// Authorization.
func (d *loginHub) login(remote, authorization string) *http.Response {
	d.t.Helper()
	req := httptest.NewRequest(http.MethodGet, "http://hub"+admin, nil)
	req.RemoteAddr = remote
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	rec := httptest.NewRecorder()
	d.server.Handler().ServeHTTP(rec, req)
	return rec.Result()
}

const (
	right = "Bearer " + token
	wrong = "Bearer a-token-that-was-guessed"
)

func TestFailedLogins_AreRefusedAfterTenInAMinute(t *testing.T) {
	for _, shown := range []string{"", wrong} {
		d := newLoginHub(t)
		for range 10 {
			require.Equal(t, http.StatusUnauthorized, d.login("192.0.2.1:1000", shown).StatusCode)
			d.now = d.now.Add(time.Second)
		}
		refused := d.login("192.0.2.1:1001", shown)
		require.Equal(t, http.StatusTooManyRequests, refused.StatusCode)
		require.Equal(t, map[string]string{"": "50", wrong: "1"}[shown], refused.Header.Get("Retry-After"))
		require.Equal(t, http.StatusOK, d.login("192.0.2.2:1000", right).StatusCode, "another address is not affected")
		d.now = d.now.Add(50 * time.Second)
		require.Equal(t, http.StatusUnauthorized, d.login("192.0.2.1:1000", shown).StatusCode)
		require.NoError(t, testutil.GatherAndCompare(d.metrics, strings.NewReader(`
			# HELP messagehub_operator_logins_failed_total Requests of operators without the right token.
			# TYPE messagehub_operator_logins_failed_total counter
			messagehub_operator_logins_failed_total 11
			# HELP messagehub_operator_logins_refused_total Requests of operators refused because of failed logins from the same address.
			# TYPE messagehub_operator_logins_refused_total counter
			messagehub_operator_logins_refused_total 1
		`), "messagehub_operator_logins_failed_total", "messagehub_operator_logins_refused_total"))
	}
}

func TestFailedLogins_AllowOneGuessPerSecond(t *testing.T) {
	d := newLoginHub(t)
	for range 10 {
		require.Equal(t, http.StatusUnauthorized, d.login("127.0.0.1:1000", wrong).StatusCode)
	}
	for range 3 {
		require.Equal(t, http.StatusOK, d.login("127.0.0.1:1000", right).StatusCode, "the strangers come from the same proxy")
	}
	require.Equal(t, http.StatusTooManyRequests, d.login("127.0.0.1:1000", "").StatusCode, "it is no guess")
	require.Equal(t, http.StatusOK, d.login("127.0.0.1:1000", right).StatusCode)
	for range 3 {
		require.Equal(t, http.StatusTooManyRequests, d.login("127.0.0.1:1000", wrong).StatusCode)
		d.now = d.now.Add(999 * time.Millisecond)
		require.Equal(t, http.StatusTooManyRequests, d.login("127.0.0.1:1000", right).StatusCode, "a second guess")
		d.now = d.now.Add(time.Millisecond)
		require.Equal(t, http.StatusOK, d.login("127.0.0.1:1000", right).StatusCode)
	}
}

func TestFailedLogins_DoNotLockOutALongToken(t *testing.T) {
	const long = "messagehub-YKAB2SP4DFYGV5GM6ILCPQCICH"
	d := newLoginHub(t, func(o *api.Options, _ *hub.Options) { o.AdminToken = long })
	for range 10 {
		require.Equal(t, http.StatusUnauthorized, d.login("127.0.0.1:1000", wrong).StatusCode)
	}
	for _, shown := range []string{"", wrong, "Bearer " + long + "x", "Basic " + long} {
		require.Equal(t, http.StatusTooManyRequests, d.login("127.0.0.1:1000", shown).StatusCode, shown)
	}
	require.Equal(t, http.StatusOK, d.login("127.0.0.1:1000", "Bearer "+long).StatusCode, "the strangers come from the same proxy")
}

func TestFailedLogins_AreWarningsWithTheAddressAndNotTheToken(t *testing.T) {
	d := newLoginHub(t)
	d.login("192.0.2.1:1000", wrong)
	d.login("192.0.2.1:1000", right)
	lines := d.logs.String()
	require.Equal(t, 1, strings.Count(lines, `"level":"WARN"`), lines)
	require.Contains(t, lines, `"msg":"operator login failed"`)
	require.Contains(t, lines, `"remote":"192.0.2.1:1000"`)
	require.NotContains(t, lines, strings.TrimPrefix(wrong, "Bearer "))
	require.NotContains(t, lines, token)
}

func TestFailedLogins_OfManyAddressesLeaveEachOneAttempt(t *testing.T) {
	d := newLoginHub(t)
	for i := range 20 {
		for range 5 {
			require.Equal(t, http.StatusUnauthorized, d.login(fmt.Sprintf("192.0.2.%d:1", i), wrong).StatusCode)
		}
	}
	require.Equal(t, http.StatusTooManyRequests, d.login("192.0.2.1:1", wrong).StatusCode, "a hundred in all")
	require.Equal(t, http.StatusUnauthorized, d.login("192.0.2.99:1", wrong).StatusCode)
	require.Equal(t, http.StatusTooManyRequests, d.login("192.0.2.99:1", wrong).StatusCode)
	require.Equal(t, http.StatusOK, d.login("192.0.2.100:1", right).StatusCode)
	require.Equal(t, http.StatusOK, d.login("192.0.2.100:1", right).StatusCode, "a login that succeeds does not count")
}

func TestFailedLogins_CountANetworkOfIPv6AsOneAddress(t *testing.T) {
	d := newLoginHub(t)
	for i := range 10 {
		require.Equal(t, http.StatusUnauthorized, d.login(fmt.Sprintf("[2001:db8::%x]:1", i), wrong).StatusCode)
	}
	require.Equal(t, http.StatusTooManyRequests, d.login("[2001:db8::ffff]:1", wrong).StatusCode)
	require.Equal(t, http.StatusOK, d.login("[2001:db8:0:1::1]:1", right).StatusCode)
}

func TestFailedLogins_TakeBoundedMemory(t *testing.T) {
	d := newLoginHub(t)
	for i := range api.MaxLoginAddresses + 1000 {
		d.login(fmt.Sprintf("10.%d.%d.1:1", i/256, i%256), wrong)
		d.now = d.now.Add(time.Microsecond)
	}
	require.Equal(t, api.MaxLoginAddresses, api.LoginAddresses(d.server))
	d.now = d.now.Add(2 * time.Minute)
	d.login("192.0.2.1:1", wrong)
	require.Equal(t, 1, api.LoginAddresses(d.server), "windows that have ended are forgotten")
}
