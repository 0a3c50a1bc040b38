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

// certificate is the certificate of the server. Its files, and the file of the
// client authorities, are read again when they change, so that a renewed
// certificate requires no restart.
type certificate struct {
	files  config.TLS
	logger *slog.Logger

	mu        sync.Mutex
	loaded    *tls.Certificate
	read      []os.FileInfo // state of the files when loaded was read from them
	isFailing bool          // true if the last attempt to read the files failed

	authorities        *tls.Config // TLS settings with the client authorities; nil if clients are not asked for a certificate
	readAuthorities    os.FileInfo // state of the file when authorities was read from it
	isAuthorityFailing bool        // true if the last attempt to read the file of the authorities failed
}

// loadCertificate returns nil if no certificate is configured.
func loadCertificate(files config.TLS, logger *slog.Logger) (*certificate, error) {
	if files.Certificate == "" {
		return nil, nil
	}
	c := &certificate{files: files, logger: logger}
	return c, errors.Join(c.load(), c.loadAuthorities())
}

// config returns the TLS settings of the server.
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
		NextProtos: []string{"h2", "http/1.1"}, // otherwise the listener of parked requests, which has no TLS, would turn HTTP/2 off
	}
}

// configForClient returns the TLS settings with the current client authorities.
// If their file cannot be read, the previous authorities remain valid. A client
// without a certificate is accepted. A client whose certificate has expired, or
// is from another authority, fails in the handshake.
func (c *certificate) configForClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.loadAuthorities()
	if err != nil && !c.isAuthorityFailing { // logged only once: any client can begin handshakes and so fill the log
		c.logger.Warn("the authorities of client certificates were not read again", "error", err)
	}
	c.isAuthorityFailing = err != nil
	return c.authorities, nil
}

// loadAuthorities reads the file of the client authorities if it has changed.
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
	// New settings have new session ticket keys. So a client cannot resume a
	// session that the previous authorities accepted.
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

// isSameVersion reports whether a file is unchanged between two calls of Stat.
// It compares more than the modification time: file times are coarse, and a file
// that replaces another may be older.
func isSameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// get returns the current certificate. If its files cannot be read, get returns
// the previous certificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	if err != nil && !c.isFailing { // logged only once: any client can begin handshakes and so fill the log
		c.logger.Warn("the certificate of the server was not renewed", "error", err)
	}
	c.isFailing = err != nil
	if c.loaded == nil {
		return nil, errors.New("there is no certificate")
	}
	return c.loaded, nil
}

// invalidFile returns an error about a file named by a setting.
func invalidFile(format string, args ...any) error {
	return &config.InvalidError{Err: fmt.Errorf(format, args...)}
}
