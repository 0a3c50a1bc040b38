package identity_test

import (
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/oauth2-proxy/mockoidc"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity"
)

// The issuer mockoidc signs tokens with a library that the hub does not use. The hub accepts them.
func TestToken_OfAnotherImplementationIsAccepted(t *testing.T) {
	issuer, err := mockoidc.Run()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, issuer.Server.Close()) })
	key := issuer.Keypair
	f := newFixture(t, func(o *identity.Options) {
		o.Issuers, o.Audiences = []string{issuer.Issuer()}, []string{issuer.ClientID}
	})
	claims := jwt.MapClaims{
		"iss": issuer.Issuer(), "aud": issuer.ClientID, "sub": "kim", "exp": time.Now().Add(time.Hour).Unix(),
		"roles": []string{"actor"}, "actor": "5790001330552",
	}
	token, err := key.SignJWT(claims)
	require.NoError(t, err)
	p, err := f.authenticate(token)
	require.NoError(t, err)
	require.True(t, p.Has(identity.RoleActor))
	require.Equal(t, "kim", p.Subject)

	delete(claims, "exp")
	token, err = key.SignJWT(claims)
	require.NoError(t, err)
	_, err = f.authenticate(token)
	require.ErrorContains(t, err, "no claim exp")
}
