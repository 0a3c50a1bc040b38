package loopback_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// hosts contains the expected results of IsHost and IsDestination.
var hosts = []struct {
	host                  string
	isHost, isDestination bool
}{
	{"localhost", true, true},
	{"LOCALHOST", true, true},
	{"127.0.0.1", true, true},
	{"127.1.2.3", true, true},
	{"::1", true, true},
	{"::ffff:127.0.0.1", true, true},

	{"localhost:8080", true, false}, // a destination must not have a port
	{"127.0.0.1:8080", true, false},
	{"[::1]", true, false},
	{"[::1]:8080", true, false},

	{"x.localhost", true, false}, // some resolvers send this name to a name server
	{"a.B.LocalHost:8080", true, false},

	{"", false, false},
	{".", false, false},
	{":8080", false, false},
	{"localhost.", false, false},
	{"xlocalhost", false, false},
	{"localhost.example.org", false, false},
	{"127.0.0.1.example.org:80", false, false},
	{"127.1", false, false},
	{"2130706433", false, false},
	{"0.0.0.0", false, false},
	{"::", false, false},
	{"10.0.0.1", false, false},
	{"192.0.2.1:8080", false, false},
	{"example.org", false, false},
}

func TestIsHostAndIsDestination(t *testing.T) {
	for _, tc := range hosts {
		require.Equal(t, tc.isHost, loopback.IsHost(tc.host), "host %q", tc.host)
		require.Equal(t, tc.isDestination, loopback.IsDestination(tc.host), "destination %q", tc.host)
	}
}

func TestIsAddr(t *testing.T) {
	for ip, want := range map[string]bool{"127.0.0.1": true, "127.1.2.3": true, "::1": true, "0.0.0.0": false, "::": false, "10.0.0.1": false} {
		require.Equal(t, want, loopback.IsAddr(&net.TCPAddr{IP: net.ParseIP(ip), Port: 1}), ip)
	}
	require.False(t, loopback.IsAddr(&net.UnixAddr{Name: "127.0.0.1"}))
}

// requestHost sends a request with the given Host header to a server on address, and returns the response.
func requestHost(address, host string) *httptest.ResponseRecorder {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	handler := loopback.CheckHost(&net.TCPAddr{IP: net.ParseIP(address), Port: 1}, next, "not here", "Hub.internal:99", "192.0.2.1")
	r := httptest.NewRequest(http.MethodGet, "http://example.org/", nil)
	r.Host = host
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestCheckHost_RejectsOtherHostsOnLoopbackAddresses(t *testing.T) {
	for _, tc := range hosts {
		if want := tc.isHost || tc.host == "192.0.2.1:8080"; want {
			require.Equal(t, http.StatusNoContent, requestHost("127.0.0.1", tc.host).Code, tc.host)
		} else {
			require.Equal(t, http.StatusMisdirectedRequest, requestHost("::1", tc.host).Code, tc.host)
		}
		require.Equal(t, http.StatusNoContent, requestHost("0.0.0.0", tc.host).Code, tc.host)
	}
	require.Equal(t, "not here\n", requestHost("127.0.0.1", "example.org").Body.String())
}

func TestCheckHost_AcceptsFurtherHosts(t *testing.T) {
	for host, want := range map[string]int{
		"hub.INTERNAL": http.StatusNoContent, "hub.internal:8081": http.StatusNoContent,
		"x.hub.internal": http.StatusMisdirectedRequest, "internal": http.StatusMisdirectedRequest,
	} {
		require.Equal(t, want, requestHost("127.0.0.1", host).Code, host)
	}
}
