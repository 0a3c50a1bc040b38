package node_test

import (
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// A starvedListener is a listener whose first calls of Accept fail, as if the
// process had too many open files.
type starvedListener struct {
	net.Listener
	failures atomic.Int64 // number of Accept calls that will still fail
}

func (l *starvedListener) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestRun_AcceptsAgainAfterDescriptorsRanOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	starved := &starvedListener{Listener: l}
	starved.failures.Store(3)
	n, stop := start(t, settings(""), node.Options{Listener: starved})
	status, _ := call(t, http.MethodGet, n.URL()+"/healthz", "", "")
	require.Equal(t, http.StatusOK, status)
	require.Negative(t, starved.failures.Load())
	require.NoError(t, stop())
}
