package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/messagehub/messagehub/cmd/node/config"
)

// A certificate is that of the server. Its files are read again once they have changed, so that a
// renewed certificate needs no restart.
type certificate struct {
	files       config.TLS
	authorities *x509.CertPool // of client certificates; nil: none is asked for
	logger      *slog.Logger

	mu        sync.Mutex
	loaded    *tls.Certificate
	read      []os.FileInfo // of the files that loaded is from
	isFailing bool          // the files could not be read when they were needed last
}

// loadCertificate returns nil for no files.
func loadCertificate(files config.TLS, logger *slog.Logger) (*certificate, error) {
	if files.Certificate == "" {
		return nil, nil
	}
	c := &certificate{files: files, logger: logger}
	if err := c.load(); err != nil || files.ClientCA == "" {
		return c, err
	}
	text, err := os.ReadFile(files.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("read the authorities of client certificates: %w; see tls.client-ca", err)
	}
	c.authorities = x509.NewCertPool()
	if !c.authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the authorities of client certificates: %s has no certificate; tls.client-ca needs a PEM file", files.ClientCA)
	}
	return c, nil
}

// config returns the TLS of a server. A client that has no certificate is accepted; one whose
// certificate has expired or is of another authority fails in the handshake.
func (c *certificate) config() *tls.Config {
	asks := tls.NoClientCert
	if c.authorities != nil {
		asks = tls.VerifyClientCertIfGiven
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: c.get, ClientAuth: asks, ClientCAs: c.authorities,
		NextProtos: []string{"h2", "http/1.1"}, // or the listener of parked requests, which has no TLS, would turn HTTP/2 off
	}
}

// load reads the files if they have changed.
func (c *certificate) load() error {
	var read []os.FileInfo
	isChanged := c.loaded == nil
	for i, name := range []string{c.files.Certificate, c.files.Key} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read the certificate of the server: %w; see tls.cert and tls.key", err)
		}
		read = append(read, info)
		isChanged = isChanged || !isSameVersion(info, c.read[i])
	}
	if !isChanged {
		return nil
	}
	loaded, err := tls.LoadX509KeyPair(c.files.Certificate, c.files.Key)
	if err != nil {
		return fmt.Errorf("read the certificate of the server: %w; tls.cert and tls.key need PEM files that belong together", err)
	}
	c.loaded, c.read = &loaded, read
	return nil
}

// isSameVersion reports whether a file has not changed from one look at it to the next. The time
// alone does not show it: a file that replaces another may be older, and clocks of files are coarse.
func isSameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
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
