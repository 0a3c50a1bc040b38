// Package devissuer is a token issuer for a development hub on the same machine.
// A user who may read the issuer's file can sign tokens with any role. So a
// development hub can require tokens, as a hub in production does.
package devissuer

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/embedded/httpserve"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// Audience is the audience of the tokens.
const Audience = "messagehub"

// DefaultAddress is the default address of the issuer.
const DefaultAddress = "127.0.0.1:8082"

// fileName is the name of the file in the hub's data folder that contains the
// issuer's URL and private key.
const fileName = "dev-issuer.json"

// An Issuer signs tokens, and serves the public key with which a hub verifies
// them.
type Issuer struct {
	URL string          `json:"issuer"`
	Key jose.JSONWebKey `json:"key"` // the private key

	listener net.Listener // nil if Read returned the issuer, which then cannot serve
	fetches  atomic.Int64
}

// CheckAddress returns an error if address is not a loopback address.
func CheckAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !loopback.IsDestination(host) {
		return fmt.Errorf("--dev-issuer: want an address of this machine alone, such as %s, got %q", DefaultAddress, address)
	}
	return nil
}

// Listen returns an issuer that listens on a loopback address. The caller must
// call Serve.
func Listen(ctx context.Context, address string) (*Issuer, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--dev-issuer: %w; choose another address with --dev-issuer=HOST:PORT", err)
	}
	return &Issuer{
		URL: "http://" + l.Addr().String(), listener: l,
		Key: jose.JSONWebKey{Key: key, KeyID: rand.Text(), Algorithm: string(jose.ES256), Use: "sig"},
	}, nil
}

// Close closes the listener.
func (i *Issuer) Close() error { return i.listener.Close() }

// Serve serves requests until ctx ends.
func (i *Issuer) Serve(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		writeJSON(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.Key.Public()}})
	})
	return httpserve.Serve(ctx, i.listener, httpserve.Options{Handler: mux, Server: "the development issuer", MaxConnections: 64})
}

// Fetches returns the number of times that the keys were fetched.
func (i *Issuer) Fetches() int64 { return i.fetches.Load() }

func writeJSON(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document) // fails only if the client has disconnected
}

// Keep writes the issuer to a file in the data folder of the hub. Only the
// current user may read the file.
func (i *Issuer) Keep(folder string) (err error) {
	if err := datafolder.Make(folder); err != nil {
		return err
	}
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(folder, "."+fileName+"-*") // CreateTemp sets the mode 0600
	if err != nil {
		return err
	}
	_, err = draft.Write(text)
	if err = errors.Join(err, draft.Close()); err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return os.Rename(draft.Name(), filepath.Join(folder, fileName))
}

// Read returns the issuer that Keep wrote to the data folder of a hub.
func Read(folder string) (*Issuer, error) {
	text, err := os.ReadFile(filepath.Join(folder, fileName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("the hub with the data folder %s has no development issuer; start it with messagehub serve --dev-issuer, or name its folder with --data", folder)
	}
	if err != nil {
		return nil, err
	}
	i := new(Issuer)
	if json.Unmarshal(text, i) != nil || !i.Key.Valid() || i.Key.IsPublic() {
		return nil, fmt.Errorf("%s holds no issuer; start the hub with messagehub serve --dev-issuer again", filepath.Join(folder, fileName))
	}
	return i, nil
}

// Claims are the claims of a token.
type Claims struct {
	Subject string
	Actors  []string
	Roles   []string
	Expires time.Time
}

// Sign returns a token with these claims.
func (i *Issuer) Sign(c Claims) (string, error) {
	payload, err := json.Marshal(struct {
		Issuer   string   `json:"iss"`
		Audience string   `json:"aud"`
		Subject  string   `json:"sub"`
		Expires  int64    `json:"exp"`
		ID       string   `json:"jti"`
		Roles    []string `json:"roles"`
		Actors   []string `json:"actor,omitempty"`
	}{i.URL, Audience, c.Subject, c.Expires.Unix(), rand.Text(), c.Roles, c.Actors})
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.Key}, nil)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
