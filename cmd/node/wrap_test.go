package node_test

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
)

// A writeObserver is a connection that closes written before its first write.
type writeObserver struct {
	net.Conn
	once    *sync.Once
	written chan struct{}
}

func (w *writeObserver) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.written) })
	return w.Conn.Write(p)
}

func TestConnectionsToTheEmbeddedBusUseWrapBus(t *testing.T) {
	var once sync.Once
	written := make(chan struct{})
	_, stop := start(t, settings(""), node.Options{WrapBus: func(conn net.Conn) net.Conn { return &writeObserver{conn, &once, written} }})
	<-written
	require.NoError(t, stop())
}
