package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// A Doer sends requests to issuers.
type Doer interface {
	// Do sends a request and returns the response. It must not follow redirects.
	Do(*http.Request) (*http.Response, error)
}

// maxDocument is the maximum size of a document from an issuer, in bytes. Large issuers have
// documents of 20 KB.
const maxDocument = 1 << 20

// fetchKeys fetches the keys of an issuer. Their address is in the issuer's discovery document.
func fetchKeys(ctx context.Context, client Doer, issuer string) ([]jose.JSONWebKey, error) {
	var about struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := fetchDocument(ctx, client, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", &about); err != nil {
		return nil, err
	}
	if about.Issuer != issuer {
		return nil, fmt.Errorf("it calls itself %.200q; set oidc.issuer to that, character by character", about.Issuer)
	}
	u, err := url.Parse(about.Keys)
	if err != nil || u.Host == "" || u.Scheme != "https" && !strings.HasPrefix(issuer, u.Scheme+"://") {
		return nil, errors.New("its jwks_uri is not a URL with https")
	}
	var keys jose.JSONWebKeySet
	if err := fetchDocument(ctx, client, about.Keys, &keys); err != nil {
		return nil, err
	}
	return usableKeys(keys.Keys), nil
}

func fetchDocument(ctx context.Context, client Doer, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // an error from closing a body after reading is harmless
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers with status %d", address, resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", address, err)
	case len(text) > maxDocument:
		return fmt.Errorf("%s answers with more than %d bytes", address, maxDocument)
	case json.Unmarshal(text, into) != nil:
		return fmt.Errorf("%s does not answer with the JSON of an issuer", address)
	}
	return nil
}
