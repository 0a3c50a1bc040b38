package identity_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/identity/identitytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rsaKey returns a key that all tests share, because generating an RSA key is slow.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// A tokenFixture is an Authenticator with an issuer and a clock.
type tokenFixture struct {
	t      *testing.T
	issuer *identitytest.Issuer
	auth   *identity.Authenticator

	mu  sync.Mutex
	now time.Time
}

func newFixture(t *testing.T, change ...func(*identity.Options)) *tokenFixture {
	t.Helper()
	f := &tokenFixture{t: t, issuer: identitytest.Start(t), now: time.Now()}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	opts := identity.Options{Issuers: []string{f.issuer.URL}, Audiences: []string{identitytest.Audience}, Client: client, Clock: f.clock}
	for _, c := range change {
		c(&opts)
	}
	f.auth = identity.New(opts)
	return f
}

func (f *tokenFixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *tokenFixture) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// authenticate authenticates a request with a token.
func (f *tokenFixture) authenticate(token string) (*identity.Principal, error) {
	return f.auth.Authenticate(request(f.t, "/", "Bearer "+token))
}

func request(t *testing.T, target string, authorization ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
	require.NoError(t, err)
	if len(authorization) > 0 {
		r.Header["Authorization"] = authorization
	}
	return r
}

// kindOf returns the kind and the text of an authentication error.
func kindOf(t *testing.T, err error) (identity.Kind, string) {
	t.Helper()
	e, ok := errors.AsType[*identity.Error](err)
	require.True(t, ok, "%v", err)
	return e.Kind, e.Description
}

// newUnsignedToken returns a token with a header, claims and an invalid signature.
func newUnsignedToken(header, claims string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// newHS256Token returns a token whose HS256 secret is the public key of the issuer.
func newHS256Token(f *tokenFixture) string {
	public, err := x509.MarshalPKIXPublicKey(&f.issuer.Key().Key.(*ecdsa.PrivateKey).PublicKey)
	require.NoError(f.t, err)
	return f.issuer.Sign(jose.JSONWebKey{Key: public, Algorithm: "HS256", KeyID: f.issuer.Key().KeyID}, f.issuer.Claims(nil), nil)
}

// Every invalid token fails with the kind Invalid, whatever is wrong.
func TestInvalidToken_FailsWithKindInvalid(t *testing.T) {
	seconds := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, tc := range map[string]struct {
		token func(f *tokenFixture) string
		want  string // expected substring of the description
	}{
		"a text":                     {func(*tokenFixture) string { return "text" }, "is not a signed JSON Web Token"},
		"a long text":                {func(*tokenFixture) string { return strings.Repeat("a.", 20<<10) }, "too long"},
		"alg none":                   {func(f *tokenFixture) string { return newUnsignedToken(`{"alg":"none"}`, `{"iss":"`+f.issuer.URL+`"}`) }, "RS256, PS256 or ES256"},
		"HS256 with the public key":  {newHS256Token, "RS256, PS256 or ES256"},
		"no signature of the issuer": {func(f *tokenFixture) string { return f.issuer.Token(nil) + "AA" }, "not by a key of its issuer"},
		"an unknown crit": {func(f *tokenFixture) string {
			return f.issuer.Sign(f.issuer.Key(), f.issuer.Claims(nil), map[jose.HeaderKey]any{"crit": []string{"x"}, "x": 1})
		}, "signature"},
		"no audience":                  {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"aud": nil}) }, "another audience"},
		"another audience":             {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"aud": []string{"x", "y"}}) }, "another audience"},
		"an audience that is a number": {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"aud": 1}) }, "wrong form"},
		"no issuer":                    {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"iss": nil}) }, "does not trust the issuer"},
		"an issuer with a slash":       {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"iss": f.issuer.URL + "/"}) }, "with or without a slash"},
		"another issuer":               {func(f *tokenFixture) string { return identitytest.Start(f.t).Token(nil) }, "does not trust the issuer"},
		"expired a second ago":         {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"exp": seconds(-time.Second)}) }, "has expired"},
		"no exp":                       {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"exp": nil}) }, "no claim exp"},
		"exp is a text":                {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"exp": "4102444800"}) }, "wrong form"},
		"exp is beyond all calendars":  {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"exp": 1e300}) }, "wrong form"},
		"nbf ahead by two minutes": {func(f *tokenFixture) string {
			return f.issuer.Token(identitytest.Claims{"nbf": seconds(2 * time.Minute)})
		}, "is not valid yet"},
		"a clock an hour ahead": {func(f *tokenFixture) string {
			return f.issuer.Token(identitytest.Claims{"nbf": seconds(time.Hour), "exp": seconds(2 * time.Hour)})
		}, "Compare the clocks"},
		"a clock an hour behind": {func(f *tokenFixture) string {
			return f.issuer.Token(identitytest.Claims{"nbf": seconds(-2 * time.Hour), "exp": seconds(-time.Hour)})
		}, "compare the clocks"},
		"roles are a text":          {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"roles": "actor"}) }, "wrong form"},
		"roles are numbers":         {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"roles": []int{1}}) }, "wrong form"},
		"an actor id that is none":  {func(f *tokenFixture) string { return f.issuer.Actor("Jørgen") }, "wrong form"},
		"an actor that is a number": {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"actor": 5790001330552}) }, "wrong form"},
		"no tenant":                 {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"tid": nil}) }, "oidc.tenants"},
		"another tenant":            {func(f *tokenFixture) string { return f.issuer.Token(identitytest.Claims{"tid": "theirs"}) }, "oidc.tenants"},
		"a key of another issuer with the same kid": {func(f *tokenFixture) string {
			return f.issuer.Sign(identitytest.Start(f.t).Key(), f.issuer.Claims(nil), nil)
		}, "not by a key of its issuer"},
		"a certificate that is not there": {func(f *tokenFixture) string {
			return f.issuer.Token(identitytest.Claims{"tid": "ours", "cnf": map[string]string{"x5t#S256": "abc"}})
		}, "client certificate"},
		"a binding that is unknown": {func(f *tokenFixture) string {
			return f.issuer.Token(identitytest.Claims{"tid": "ours", "cnf": map[string]string{"jkt": "abc"}})
		}, "client certificate"},
		"claims that are no object": {func(f *tokenFixture) string { return f.issuer.Sign(f.issuer.Key(), []int{1}, nil) }, "is not a signed JSON Web Token"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *identity.Options) { o.Tenants = []string{"ours"} })
			p, err := f.authenticate(tc.token(f))
			require.Nil(t, p)
			kind, text := kindOf(t, err)
			require.Equal(t, identity.Invalid, kind)
			require.Contains(t, text, tc.want)
		})
	}
}

func TestRequest_HasOneTokenInItsHeader(t *testing.T) {
	f := newFixture(t)
	good := "Bearer " + f.issuer.Token(nil)
	for name, tc := range map[string]struct {
		request *http.Request
		kind    identity.Kind
	}{
		"none":                        {request(t, "/"), identity.Missing},
		"two":                         {request(t, "/", good, good), identity.Ambiguous},
		"one in the query":            {request(t, "/?access_token=x"), identity.Ambiguous},
		"one in the query and header": {request(t, "/?access_token=x", good), identity.Ambiguous},
		"another scheme":              {request(t, "/", "Basic eDp5"), identity.Ambiguous},
		"a scheme without a token":    {request(t, "/", "Bearer "), identity.Ambiguous},
	} {
		_, err := f.auth.Authenticate(tc.request)
		kind, _ := kindOf(t, err)
		require.Equal(t, tc.kind, kind, name)
	}
	_, err := f.auth.Authenticate(request(t, "/", strings.Replace(good, "Bearer", "bearer", 1)))
	require.NoError(t, err, "the scheme has no case")
}

func TestToken_IsAcceptedWithEachAlgorithm(t *testing.T) {
	for _, algorithm := range []string{"RS256", "PS256"} {
		f := newFixture(t)
		f.issuer.Use(rsaKey(), algorithm)
		_, err := f.authenticate(f.issuer.Token(nil))
		require.NoError(t, err, algorithm)
	}
	f := newFixture(t)
	f.issuer.Use(rsaKey(), "RS384")
	_, err := f.authenticate(f.issuer.Token(nil))
	kind, _ := kindOf(t, err)
	require.Equal(t, identity.Invalid, kind, "RS384 is not one of them")
	short, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	f.issuer.Use(short, "ES384")
	_, err = f.authenticate(f.issuer.Token(nil))
	require.Error(t, err)
}

func TestToken_MayBeginUpToAMinuteInTheFuture(t *testing.T) {
	f := newFixture(t)
	_, err := f.authenticate(f.issuer.Token(identitytest.Claims{"nbf": f.now.Add(55 * time.Second).Unix()}))
	require.NoError(t, err)
	f.advance(-10 * time.Second)
	_, err = f.authenticate(f.issuer.Token(identitytest.Claims{"nbf": f.now.Add(65 * time.Second).Unix(), "jti": "another"}))
	require.Error(t, err)
}

// Entra issues tokens of two versions, with a different issuer for each. The hub accepts them all.
func TestToken_OfEntraIsAcceptedInBothVersions(t *testing.T) {
	second := identitytest.Start(t)
	f := newFixture(t, func(o *identity.Options) {
		o.Issuers = append(o.Issuers, second.URL)
		o.Audiences = []string{"api://4c5e0b9f", "4c5e0b9f"}
		o.Tenants = []string{"9a3d"}
	})
	first := identitytest.Claims{"ver": "1.0", "aud": "api://4c5e0b9f", "appid": "client-1", "azp": nil, "tid": "9a3d", "idtyp": "app", "roles": []string{"actor", "Mail.Read"}}
	p, err := f.authenticate(f.issuer.Token(first))
	require.NoError(t, err)
	require.Equal(t, "client-1", p.Client)
	require.Equal(t, "9a3d", p.Tenant)
	require.True(t, p.Has(identity.RoleActor))
	p, err = f.authenticate(second.Token(identitytest.Claims{"ver": "2.0", "aud": "4c5e0b9f", "azp": "client-2", "tid": "9a3d", "roles": []string{"operator"}}))
	require.NoError(t, err)
	require.Equal(t, "client-2", p.Client)
	require.True(t, p.Has(identity.RoleOperatorRead), "an operator may read")
	require.False(t, p.Has(identity.RoleActor))
	first["tid"] = "b417"
	_, err = f.authenticate(f.issuer.Token(first))
	require.ErrorContains(t, err, "oidc.tenants")
}

func TestToken_NamesOriginsAndActors(t *testing.T) {
	f := newFixture(t, func(o *identity.Options) { o.RolesClaim, o.ActorClaim = "groups", "https://hub/actors" })
	p, err := f.authenticate(f.issuer.Token(identitytest.Claims{"groups": []string{"domain:Charges", "domain:", "domain:TimeSeries"}, "https://hub/actors": []string{"a", "b"}, "actor": "c"}))
	require.NoError(t, err)
	require.Len(t, p.Origins(), 2)
	require.Len(t, p.Grants(), 2)
	require.True(t, p.Has(identity.RoleDomain))
}

func TestKeys_AreFetchedOnceForManyForgedTokens(t *testing.T) {
	f := newFixture(t)
	_, err := f.authenticate(f.issuer.Token(nil))
	require.NoError(t, err)
	forger := identitytest.Start(t)
	var forging sync.WaitGroup
	for range 50 {
		forger.Rotate() // each of these tokens names an unknown key
		token := forger.Token(identitytest.Claims{"iss": f.issuer.URL})
		forging.Go(func() {
			if _, err := f.authenticate(token); err == nil {
				t.Error("a forged token counts")
			}
		})
	}
	forging.Wait()
	require.Equal(t, 1, f.issuer.Fetches())
	f.advance(30 * time.Second)
	_, err = f.authenticate(forger.Token(identitytest.Claims{"iss": f.issuer.URL, "jti": "x"}))
	require.Error(t, err)
	require.Equal(t, 2, f.issuer.Fetches())
}

func TestKeys_AreRotatedWhileRequestsRun(t *testing.T) {
	f := newFixture(t)
	before := f.issuer.Token(nil)
	_, err := f.authenticate(before)
	require.NoError(t, err)
	f.issuer.Rotate()
	_, err = f.authenticate(before)
	require.NoError(t, err, "its key has not been withdrawn as far as the hub knows")
	f.advance(30 * time.Second)
	_, err = f.authenticate(f.issuer.Token(nil))
	require.NoError(t, err, "the new key is fetched")
	_, err = f.authenticate(before)
	require.ErrorContains(t, err, "not by a key of its issuer", "a token that was remembered is forgotten with its key")
}

// The issuer sends a wrong response, or none. Its last keys are used for a day.
func TestKeys_AreUsedForADayDuringAnOutageOfTheIssuer(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"500":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"HTML": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"a long document": func(w http.ResponseWriter, _ *http.Request) {
			for block := strings.Repeat(" ", 64<<10); ; {
				if _, err := io.WriteString(w, block); err != nil {
					return
				}
			}
		},
		"another issuer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"issuer":"x","jwks_uri":"https://x/keys"}`)
		},
		"no keys": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"issuer":"http://`+r.Host+`","jwks_uri":"http://`+r.Host+`/keys","keys":[]}`)
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.issuer.Break(answer)
			_, err := f.authenticate(f.issuer.Token(nil))
			kind, _ := kindOf(t, err)
			require.Equal(t, identity.Unavailable, kind, "at start")
			f.issuer.Break(nil)
			f.advance(time.Minute)
			_, err = f.authenticate(f.issuer.Token(identitytest.Claims{"exp": f.now.Add(48 * time.Hour).Unix()}))
			require.NoError(t, err)

			f.issuer.Break(answer)
			f.advance(23 * time.Hour)
			again := func() error {
				_, err := f.authenticate(f.issuer.Token(identitytest.Claims{"exp": f.now.Add(48 * time.Hour).Unix()}))
				return err
			}
			require.NoError(t, again(), "a new token of a known key")
			f.advance(time.Hour)
			kind, _ = kindOf(t, again())
			require.Equal(t, identity.Unavailable, kind, "a day later")
		})
	}
}

// A client waits for the keys and disconnects. The fetch continues for the remaining clients.
func TestKeys_AreFetchedOnceForWaitingRequests(t *testing.T) {
	f := newFixture(t)
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.issuer.Break(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() {
			close(asked)
			<-release
			f.issuer.Break(nil)
		})
		f.issuer.ServeHTTP(w, r)
	})
	token := f.issuer.Token(nil)
	leaving, leave := context.WithCancel(t.Context())
	results := make(chan error, 2)
	go func() {
		_, err := f.auth.Authenticate(request(t, "/", "Bearer "+token).WithContext(leaving))
		results <- err
	}()
	<-asked
	go func() {
		_, err := f.authenticate(token)
		results <- err
	}()
	leave()
	close(release)
	require.NoError(t, <-results)
	require.NoError(t, <-results)
	require.Equal(t, 1, f.issuer.Fetches())
}

func TestToken_IsRememberedUntilItExpires(t *testing.T) {
	f := newFixture(t)
	token := f.issuer.Token(nil)
	for range 3 {
		_, err := f.authenticate(token)
		require.NoError(t, err)
	}
	f.advance(time.Hour)
	_, err := f.authenticate(token)
	require.ErrorContains(t, err, "has expired")
}

func BenchmarkToken_Remembered(b *testing.B) {
	issuer := identitytest.Start(b)
	client := &http.Client{Transport: &http.Transport{}}
	b.Cleanup(client.CloseIdleConnections)
	auth := identity.New(identity.Options{Issuers: []string{issuer.URL}, Audiences: []string{identitytest.Audience}, Client: client})
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "/", http.NoBody)
	require.NoError(b, err)
	r.Header.Set("Authorization", "Bearer "+issuer.Token(identitytest.Claims{"roles": []string{"actor"}, "actor": "a", "filler": strings.Repeat("x", 1000)}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := auth.Authenticate(r); err != nil {
			b.Fatal(err)
		}
	}
}
