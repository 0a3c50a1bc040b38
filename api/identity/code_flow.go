package identity

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/messagehub/messagehub/domain"
)

// CodeFlowOptions are the options of a CodeFlow. Issuer, ClientID and Client are required.
type CodeFlowOptions struct {
	Issuer       string
	ClientID     string
	ClientSecret string           // secret of the client; "" for a public client
	Tenants      []string         // accepted tenants of accounts; if empty, the tenant is not checked
	RolesClaim   string           // default: roles
	Client       *http.Client     // HTTP client, which must not follow redirects
	Clock        func() time.Time // default: time.Now
	Logger       *slog.Logger     // default: discards
}

// A CodeFlow signs people in with the authorization code flow of OpenID Connect, with PKCE, state
// and nonce. It stores nothing: the caller must store the Attempt. A CodeFlow is safe for
// concurrent use.
type CodeFlow struct {
	opts   CodeFlowOptions
	tokens *Authenticator // verifies the issuer's ID tokens for this client

	mu        sync.Mutex
	endpoints *endpoints
	fetched   time.Time // time of the last attempt to fetch the endpoints
}

// endpoints are the addresses for signing in, from the discovery document of an issuer.
type endpoints struct {
	Issuer    string   `json:"issuer"`
	Authorize string   `json:"authorization_endpoint"`
	Token     string   `json:"token_endpoint"`
	Methods   []string `json:"token_endpoint_auth_methods_supported"`
}

// An Attempt is one attempt to sign in. It is a secret of the browser that started the attempt.
type Attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // PKCE code verifier
}

// An Account is the issuer's account of a person who has signed in.
type Account struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	Name    string `json:"name,omitempty"` // readable name of the person
	Roles   []Role `json:"roles"`
}

// Principal returns the principal for requests of this account.
func (a *Account) Principal() *Principal {
	return &Principal{Issuer: a.Issuer, Subject: a.Subject, roles: a.Roles}
}

// NewCodeFlow returns a CodeFlow without connecting to the issuer.
func NewCodeFlow(opts CodeFlowOptions) *CodeFlow {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	return &CodeFlow{
		opts: opts,
		tokens: New(Options{
			Issuers: []string{opts.Issuer}, Audiences: []string{opts.ClientID}, Tenants: opts.Tenants,
			RolesClaim: opts.RolesClaim, Client: opts.Client, Clock: opts.Clock, Logger: opts.Logger,
		}),
	}
}

// Issuer returns the issuer at which people sign in.
func (f *CodeFlow) Issuer() string { return f.opts.Issuer }

// Begin returns the address at the issuer to which the browser must be redirected, and the attempt,
// which must be passed to Finish. It fails with an [Error] of kind Unavailable if the issuer cannot
// be reached.
func (f *CodeFlow) Begin(ctx context.Context, redirectURL string) (address string, a Attempt, err error) {
	config, err := f.clientConfig(ctx, redirectURL)
	if err != nil {
		return "", a, err
	}
	a = Attempt{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier()}
	return config.AuthCodeURL(a.State, oauth2.S256ChallengeOption(a.Verifier), oauth2.SetAuthURLParam("nonce", a.Nonce)), a, nil
}

// Errors of failed attempts to sign in.
var (
	errState   = invalidTokenError("The issuer's response belongs to another attempt to sign in, perhaps from another browser. Sign in again.")
	errDenied  = invalidTokenError("The issuer did not sign you in. Sign in again, or ask the administrator of the issuer.")
	errCode    = invalidTokenError("The issuer does not accept the code; it was used before, or is too old. Sign in again.")
	errIDToken = invalidTokenError("The issuer has sent no ID token; the issuer must grant this console's client the scope openid.")
	errNonce   = invalidTokenError("The token of the issuer is not for this attempt to sign in. Sign in again.")
)

// Finish returns the account that has signed in. query is the query of the request with which the
// issuer redirected the browser back. Its errors are [Error]. An attempt can be finished only once,
// because the issuer accepts a code only once.
func (f *CodeFlow) Finish(ctx context.Context, redirectURL string, a Attempt, query url.Values) (*Account, error) {
	switch {
	case a.State == "" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(a.State)) != 1:
		return nil, errState
	case query.Get("code") == "":
		return nil, errDenied
	}
	config, err := f.clientConfig(ctx, redirectURL)
	if err != nil {
		return nil, err
	}
	answer, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, f.opts.Client), query.Get("code"), oauth2.VerifierOption(a.Verifier))
	if err != nil {
		if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response.StatusCode < http.StatusInternalServerError {
			return nil, errCode
		}
		return nil, errUnavailable
	}
	raw, _ := answer.Extra("id_token").(string)
	if raw == "" {
		return nil, errIDToken
	}
	return f.verifyAccount(ctx, raw, a.Nonce)
}

// verifyAccount verifies an ID token and returns its account.
func (f *CodeFlow) verifyAccount(ctx context.Context, raw, nonce string) (*Account, error) {
	if len(raw) > maxToken {
		return nil, errTooLong
	}
	t, err := f.tokens.verifyToken(ctx, raw, f.opts.Clock())
	if err != nil {
		return nil, err
	}
	c, err := claimsOf(raw)
	if err != nil {
		return nil, err
	}
	if shown, err := c.textClaim("nonce"); err != nil || subtle.ConstantTimeCompare([]byte(shown), []byte(nonce)) != 1 {
		return nil, errNonce
	}
	if client, err := c.textClaim("azp"); err != nil || client != "" && client != f.opts.ClientID {
		return nil, errAudience
	}
	if t.certificate != "" {
		return nil, errCertificate
	}
	name, err := c.firstText("preferred_username", "email", "name")
	if err != nil {
		return nil, err
	}
	return &Account{Issuer: t.issuer, Subject: t.subject, Name: domain.Shorten(name), Roles: t.roles}, nil
}

// claimsOf returns the claims of a token that was already verified.
func claimsOf(raw string) (c claims, err error) {
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(raw, ".")[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return nil, errClaims
	}
	return c, nil
}

// clientConfig returns the OAuth configuration of the client at the issuer.
func (f *CodeFlow) clientConfig(ctx context.Context, redirectURL string) (*oauth2.Config, error) {
	e, err := f.discoverEndpoints(ctx)
	if err != nil {
		return nil, err
	}
	style := oauth2.AuthStyleInParams
	if f.opts.ClientSecret != "" && !slices.Contains(e.Methods, "client_secret_post") {
		style = oauth2.AuthStyleInHeader // most issuers expect this method by default
	}
	return &oauth2.Config{
		ClientID: f.opts.ClientID, ClientSecret: f.opts.ClientSecret, RedirectURL: redirectURL, Scopes: []string{"openid", "profile"},
		Endpoint: oauth2.Endpoint{AuthURL: e.Authorize, TokenURL: e.Token, AuthStyle: style},
	}, nil
}

// endpointsAge is the time after which the endpoints of an issuer are fetched again.
const endpointsAge = time.Hour

// discoverEndpoints returns the endpoints of the issuer. It sends at most one request to the issuer
// in each fetchPause, however many browsers sign in.
func (f *CodeFlow) discoverEndpoints(ctx context.Context) (*endpoints, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sinceFetch := f.opts.Clock().Sub(f.fetched)
	switch {
	case f.endpoints != nil && sinceFetch < endpointsAge:
		return f.endpoints, nil
	case f.endpoints == nil && sinceFetch < fetchPause:
		return nil, errUnavailable
	}
	var found endpoints
	err := fetchDocument(ctx, f.opts.Client, strings.TrimSuffix(f.opts.Issuer, "/")+"/.well-known/openid-configuration", &found)
	if ctx.Err() != nil {
		return nil, ctx.Err() // the browser has disconnected; the issuer may still be reachable
	}
	f.fetched = f.opts.Clock()
	if err == nil && (found.Issuer != f.opts.Issuer || !f.isEndpoint(found.Authorize) || !f.isEndpoint(found.Token)) {
		err = errors.New("its document names another issuer, or endpoints without https")
	}
	if err != nil {
		if f.opts.Logger != nil {
			f.opts.Logger.WarnContext(ctx, "the document of the issuer at which operators sign in does not name its addresses", "issuer", f.opts.Issuer, "error", err)
		}
		f.endpoints = nil
		return nil, errUnavailable
	}
	f.endpoints = &found
	return f.endpoints, nil
}

// isEndpoint reports whether an address from the discovery document has either the scheme https or
// the same scheme as the issuer.
func (f *CodeFlow) isEndpoint(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "https" || strings.HasPrefix(f.opts.Issuer, u.Scheme+"://"))
}
