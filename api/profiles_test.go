package api_test

import (
	"bytes"
	"runtime/pprof"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProfiles_AreForOperators(t *testing.T) {
	f := serve(t)
	operator := []string{"Authorization", "Bearer " + token}
	for _, name := range []string{"allocs", "goroutine", "heap"} {
		f.do("GET", "/debug/pprof/"+name, "", "Authorization", "").problem(401, "missing-token")
		a := f.do("GET", "/debug/pprof/"+name, "", operator...).wants(200)
		require.True(t, bytes.HasPrefix([]byte(a.body), []byte{0x1f, 0x8b}), "%s is not in the format of pprof", name)
		require.Contains(t, f.do("GET", "/debug/pprof/"+name+"?debug=1", "", operator...).wants(200).body, "profile: ")
	}
	require.Contains(t, f.do("GET", "/debug/pprof/goroutine?debug=2", "", operator...).wants(200).body, "goroutine ")
	for _, name := range []string{"cmdline", "symbol", "trace", "block", "x"} {
		f.do("GET", "/debug/pprof/"+name, "", operator...).problem(404, "no-such-route")
	}
	for _, query := range []string{"seconds=0", "seconds=61", "seconds=x", "debug=3", "debug=-1", "second=1", "seconds=1&seconds=2"} {
		f.do("GET", "/debug/pprof/profile?"+query, "", operator...).problem(400, "invalid")
	}
}

func TestProfiles_RunOneCPUProfileAtATimeAndEndWithTheHub(t *testing.T) {
	f := serve(t)
	operator := []string{"Authorization", "Bearer " + token}
	require.NoError(t, pprof.StartCPUProfile(new(bytes.Buffer)))
	f.do("GET", "/debug/pprof/profile", "", operator...).problem(429, "busy")
	pprof.StopCPUProfile()
	f.server.SetDraining()
	a := f.do("GET", "/debug/pprof/profile?seconds=60", "", operator...).wants(200)
	require.True(t, bytes.HasPrefix([]byte(a.body), []byte{0x1f, 0x8b}))
}
