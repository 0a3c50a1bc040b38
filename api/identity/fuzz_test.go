package identity_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/identity/identitytest"
)

// FuzzToken sends arbitrary tokens, and signed tokens with arbitrary claims. Only signed tokens may
// be accepted, and a principal must have only the roles and actors in its claims. Errors must
// contain no text from a request.
func FuzzToken(f *testing.F) {
	issuer := identitytest.Start(f)
	client := &http.Client{Transport: &http.Transport{}}
	f.Cleanup(client.CloseIdleConnections)
	auth := identity.New(identity.Options{Issuers: []string{issuer.URL}, Audiences: []string{identitytest.Audience}, Client: client})
	good := issuer.Actor("a")
	for _, raw := range []string{"", "a.b.c", good, strings.ToUpper(good), good + ".", "." + good, strings.Replace(good, ".", "..", 1)} {
		f.Add(raw, `{"roles":["actor"],"actor":"a","exp":4102444800}`)
	}
	for _, claims := range []string{`{}`, `null`, `[]`, `{"exp":1e400}`, `{"exp":4102444800,"cnf":{}}`, `{"exp":4102444800,"actor":[1]}`, `{"exp":4102444800,"Roles":["operator"],"roles":null}`} {
		f.Add("", claims)
	}
	f.Fuzz(func(t *testing.T, raw, claims string) {
		show := func(token string) (*identity.Principal, error) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
			require.NoError(t, err)
			r.Header["Authorization"] = []string{"Bearer " + token}
			return auth.Authenticate(r)
		}
		p, err := show(raw)
		requireFixedWords(t, err)
		if !strings.HasPrefix(strings.TrimSpace(raw), good[:strings.LastIndex(good, ".")]) {
			require.Nil(t, p, "a token that no issuer has signed")
		}
		signed := signText(t, issuer, strings.Replace(claims, "{", `{"iss":"`+issuer.URL+`","aud":"`+identitytest.Audience+`",`, 1))
		p, err = show(signed)
		requireFixedWords(t, err)
		if p == nil {
			return
		}
		for _, role := range []identity.Role{identity.RoleActor, identity.RoleOperator, identity.RoleMetrics} {
			require.True(t, !p.Has(role) || strings.Contains(claims, string(role)) || strings.Contains(claims, `\u`), "%s", role)
		}
		for _, g := range p.Grants() {
			require.NotEmpty(t, g.Actor.String())
		}
	})
}

// known contains the error texts that requireFixedWords has seen.
var known []string

// requireFixedWords requires that err is an Error whose text does not depend on the request.
func requireFixedWords(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	e, ok := errors.AsType[*identity.Error](err)
	require.True(t, ok, "%v", err)
	text, _, _ := strings.Cut(e.Description, "the hub's clock says")
	if !slices.Contains(known, text) {
		known = append(known, text)
	}
	require.LessOrEqual(t, len(known), 20, "the texts quote requests")
}

// signText returns a token whose payload is claims, signed by the issuer.
func signText(t *testing.T, issuer *identitytest.Issuer, claims string) string {
	t.Helper()
	key := issuer.Key()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	require.NoError(t, err)
	signed, err := signer.Sign([]byte(claims))
	require.NoError(t, err)
	raw, err := signed.CompactSerialize()
	require.NoError(t, err)
	return raw
}
