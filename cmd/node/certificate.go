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

// A certificate is that of the server. Its files, and that of the authorities of client certificates, are read again
// once they have changed, so that a renewed one needs no restart.
type certificate struct {
	files  config.TLS
	logger *slog.Logger

	mu        sync.Mutex
	loaded    *tls.Certificate
	read      []os.FileInfo // of the files that loaded is from
	isFailing bool          // the files could not be read when they were needed last

	authorities          *tls.Config // of a server that accepts clients of the authorities; nil: no certificate is asked for
	readAuthorities      os.FileInfo // of the file that authorities is from
	areAuthoritiesFailed bool        // the file could not be read when it was needed last
}

// loadCertificate returns nil for no files.
func loadCertificate(files config.TLS, logger *slog.Logger) (*certificate, error) {
	if files.Certificate == "" {
		return nil, nil
	}
	c := &certificate{files: files, logger: logger}
	return c, errors.Join(c.load(), c.loadAuthorities())
}

// config returns the TLS of a server.
func (c *certificate) config() *tls.Config {
	config := c.newConfig()
	if c.files.ClientCA != "" {
		config.GetConfigForClient = c.configForClient
	}
	return config
}

func (c *certificate) newConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, GetCertificate: c.get,
		NextProtos: []string{"h2", "http/1.1"}, // or the listener of parked requests, which has no TLS, would turn HTTP/2 off
	}
}

// configForClient returns the TLS of a server with the current authorities. If their file cannot be read, they are those
// before. A client that has no certificate is accepted; one whose certificate has expired or is of another authority
// fails in the handshake.
func (c *certificate) configForClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.loadAuthorities()
	if err != nil && !c.areAuthoritiesFailed { // else strangers, who begin handshakes, fill the log
		c.logger.Warn("the authorities of client certificates were not read again", "error", err)
	}
	c.areAuthoritiesFailed = err != nil
	return c.authorities, nil
}

// loadAuthorities reads the file of the authorities if it has changed.
func (c *certificate) loadAuthorities() error {
	if c.files.ClientCA == "" {
		return nil
	}
	info, err := os.Stat(c.files.ClientCA)
	if err != nil {
		return invalidFile("read the authorities of client certificates: %w; see tls.client-ca", err)
	}
	if c.authorities != nil && isSameVersion(info, c.readAuthorities) {
		return nil
	}
	text, err := os.ReadFile(c.files.ClientCA)
	if err != nil {
		return invalidFile("read the authorities of client certificates: %w; see tls.client-ca", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return invalidFile("read the authorities of client certificates: %s has no certificate; tls.client-ca needs a PEM file", c.files.ClientCA)
	}
	// A new value has new keys of session tickets, so no session is resumed that other authorities accepted.
	c.authorities, c.readAuthorities = c.newConfig(), info
	c.authorities.ClientAuth, c.authorities.ClientCAs = tls.VerifyClientCertIfGiven, pool
	return nil
}

// load reads the files if they have changed.
func (c *certificate) load() error {
	var read []os.FileInfo
	isChanged := c.loaded == nil
	for i, name := range []string{c.files.Certificate, c.files.Key} {
		info, err := os.Stat(name)
		if err != nil {
			return invalidFile("read the certificate of the server: %w; see tls.cert and tls.key", err)
		}
		read = append(read, info)
		isChanged = isChanged || !isSameVersion(info, c.read[i])
	}
	if !isChanged {
		return nil
	}
	loaded, err := tls.LoadX509KeyPair(c.files.Certificate, c.files.Key)
	if err != nil {
		return invalidFile("read the certificate of the server: %w; tls.cert and tls.key need PEM files that belong together", err)
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

// invalidFile returns an error about a file that a setting names.
func invalidFile(format string, args ...any) error {
	return &config.InvalidError{Err: fmt.Errorf(format, args...)}
}
