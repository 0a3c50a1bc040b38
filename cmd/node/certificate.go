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

// A certificate is the server's certificate. Its files, and the file of client
// authorities, are read again when they change, so that a renewed certificate
// does not require a restart.
type certificate struct {
	files  config.TLS
	logger *slog.Logger

	mu        sync.Mutex
	loaded    *tls.Certificate
	read      []os.FileInfo // state of the files when loaded was read
	isFailing bool          // isFailing means that the last attempt to read the files failed

	authorities        *tls.Config // TLS settings with the client authorities; nil if client certificates are not requested
	readAuthorities    os.FileInfo // state of the file when authorities was read
	isAuthorityFailing bool        // isAuthorityFailing means that the last attempt to read the file of client authorities failed
}

// loadCertificate reads the certificate. It returns nil if none is configured.
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
		NextProtos: []string{"h2", "http/1.1"}, // set, because the listener of parked requests has no TLS and would otherwise turn HTTP/2 off
	}
}

// configForClient returns TLS settings with the current client authorities. If
// their file cannot be read, the previous authorities remain valid. A client
// without a certificate is accepted. The handshake fails if the client's
// certificate has expired, or is from an unknown authority.
func (c *certificate) configForClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.loadAuthorities()
	if err != nil && !c.isAuthorityFailing { // logged only once, because any client could fill the log with handshakes
		c.logger.Warn("the authorities of client certificates were not read again", "error", err)
	}
	c.isAuthorityFailing = err != nil
	return c.authorities, nil
}

// loadAuthorities reads the file of client authorities if it has changed.
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
	// New settings use new session ticket keys, so a client cannot resume a
	// session that the previous authorities accepted.
	c.authorities, c.readAuthorities = c.newConfig(), info
	c.authorities.ClientAuth, c.authorities.ClientCAs = tls.VerifyClientCertIfGiven, pool
	return nil
}

// load reads the certificate and key files if they have changed.
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
// It compares more than the modification time: file times are coarse, and a
// replacement may have an older time.
func isSameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// get returns the current certificate. If the files cannot be read, it returns
// the previous certificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	if err != nil && !c.isFailing { // logged only once, because any client could fill the log with handshakes
		c.logger.Warn("the certificate of the server was not renewed", "error", err)
	}
	c.isFailing = err != nil
	if c.loaded == nil {
		return nil, errors.New("there is no certificate")
	}
	return c.loaded, nil
}

// invalidFile returns an error about the file that a setting names.
func invalidFile(format string, args ...any) error {
	return &config.InvalidError{Err: fmt.Errorf(format, args...)}
}
