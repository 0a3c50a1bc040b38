package emulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

// Blob configures the emulator of a Blob Storage account.
type Blob struct {
	Options

	Listen   string           // HOST:PORT
	Engine   embedded.Options // Engine.Logger is ignored; Options.Logger is used
	TLS      bool             // serve HTTPS, with a self-signed certificate
	CertFile string           // file that receives the certificate; "": no file
}

// openReason returns why any client that reaches the account can use it. It
// returns "" if the account requires a secret key.
func (b *Blob) openReason() string {
	switch {
	case b.Engine.TrustTokens:
		return trustsTokens
	case b.hasKnownKey():
		return knownKey
	}
	return ""
}

func (b *Blob) hasKnownKey() bool {
	return cmp.Or(b.Engine.Key, embedded.WellKnownKey) == embedded.WellKnownKey
}

// Run serves the account until ctx ends. It fails if the options are invalid.
func (b *Blob) Run(ctx context.Context) (err error) {
	if err := b.Validate(); err != nil {
		return err
	}
	o := b.Engine
	o.Logger = b.Logger
	account, err := embedded.Open(o)
	if err != nil {
		return openError(b.Engine.Dir, err)
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	serving, err := b.serveOptions()
	if err != nil {
		return err
	}
	listener, err := openListener(ctx, b.Listen)
	if err != nil {
		return err
	}
	shown := account.ConnectionString(listener.Addr().String())
	if b.TLS {
		shown = account.TLSConnectionString(listener.Addr().String())
	}
	if !b.hasKnownKey() {
		shown = strings.ReplaceAll(shown, b.Engine.Key, ownKey)
	}
	fmt.Fprintf(b.Out, "Blob Storage emulator %s listens on %s with connection string %s\n", b.Version, listener.Addr(), shown)
	b.Logger.InfoContext(ctx, "ready", "address", listener.Addr().String())
	serving.HTTP, serving.AnyHost = b.checkHosts(listener.Addr(), blobHandler(account)), true
	return account.Serve(ctx, listener, serving)
}

func (b *Blob) serveOptions() (embedded.ServeOptions, error) {
	if !b.TLS {
		return embedded.ServeOptions{}, nil
	}
	cert, err := selfSigned(b.Engine.Dir, b.CertFile, b.Listen)
	if err != nil {
		return embedded.ServeOptions{}, err
	}
	return embedded.ServeOptions{TLS: cert.Config()}, nil
}

// blobHandler returns a handler for the requests of Blob Storage and for
// /healthz.
func blobHandler(account *embedded.Account) http.Handler {
	blobs := account.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && r.Method == http.MethodGet {
			writeHealth(w)
			return
		}
		blobs.ServeHTTP(w, r)
	})
}
