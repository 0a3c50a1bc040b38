package node

import (
	"net"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// Limits of an HTTP/2 connection.
const (
	maxStreams  = 100
	pingAfter   = 15 * time.Second // the server sends a ping if no frame arrives for this time
	pingTimeout = 15 * time.Second
)

// setProtocols enables HTTP/1.1, and HTTP/2 if the listener uses TLS. Without
// TLS, it enables HTTP/2 only on loopback: there, clients can know that the
// server supports it, and no proxy intervenes.
func (n *Node) setProtocols(server *http.Server, addr net.Addr) {
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(n.opts.certificate != nil)
	server.Protocols.SetUnencryptedHTTP2(n.opts.certificate == nil && loopback.IsAddr(addr))
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	if n.opts.certificate != nil {
		server.TLSConfig = n.opts.certificate.config()
	}
}

// serve serves connections of a listener until the server is closed.
func (n *Node) serve(server *http.Server, l net.Listener) error {
	if n.opts.certificate != nil {
		return server.ServeTLS(l, "", "")
	}
	return server.Serve(l)
}
