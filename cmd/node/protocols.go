package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// The limits of an HTTP/2 connection.
const (
	maxStreams  = 100
	pingAfter   = 15 * time.Second // without a frame of the client
	pingTimeout = 15 * time.Second
)

// setProtocols lets a server speak HTTP/1.1 and HTTP/2. Without TLS, HTTP/2 is spoken on loopback
// alone: there clients know that the server speaks it, and no proxy is between them.
func (n *Node) setProtocols(server *http.Server) {
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(n.certificate != nil)
	server.Protocols.SetUnencryptedHTTP2(n.certificate == nil && loopback.IsAddr(n.listener.Addr()))
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	if n.certificate != nil {
		server.TLSConfig = &tls.Config{
			MinVersion: tls.VersionTLS12, GetCertificate: n.certificate.get,
			NextProtos: []string{"h2", "http/1.1"}, // or the listener of parked requests, which has no TLS, would turn HTTP/2 off
		}
	}
}

// serve serves the clients of a listener until the server is closed.
func (n *Node) serve(server *http.Server, l net.Listener) error {
	if n.certificate != nil {
		return server.ServeTLS(l, "", "")
	}
	return server.Serve(l)
}

// A certificate is that of the server. Its files are read again once they have changed, so that a
// renewed certificate needs no restart.
type certificate struct {
	files  config.TLS
	logger *slog.Logger

	mu        sync.Mutex
	loaded    *tls.Certificate
	changed   time.Time // of the files that loaded is from
	isFailing bool      // the files could not be read when they were needed last
}

// loadCertificate returns nil for no files.
func loadCertificate(files config.TLS, logger *slog.Logger) (*certificate, error) {
	if files.Certificate == "" {
		return nil, nil
	}
	c := &certificate{files: files, logger: logger}
	err := c.load()
	return c, err
}

// load reads the files if they have changed.
func (c *certificate) load() error {
	var changed time.Time
	for _, name := range []string{c.files.Certificate, c.files.Key} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read the certificate of the server: %w; see tls.certificate and tls.key", err)
		}
		if info.ModTime().After(changed) {
			changed = info.ModTime()
		}
	}
	if changed.Equal(c.changed) {
		return nil
	}
	loaded, err := tls.LoadX509KeyPair(c.files.Certificate, c.files.Key)
	if err != nil {
		return fmt.Errorf("read the certificate of the server: %w; tls.certificate and tls.key need PEM files that belong together", err)
	}
	c.loaded, c.changed = &loaded, changed
	return nil
}

// get returns the current certificate. If the files cannot be read, it is the one before.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	if err != nil && !c.isFailing { // else strangers, who begin handshakes, fill the log
		c.logger.Warn("the certificate of the server was not renewed", "error", err)
	}
	c.isFailing = err != nil
	if c.loaded == nil {
		return nil, errors.New("there is no certificate")
	}
	return c.loaded, nil
}
