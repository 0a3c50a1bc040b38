package sas_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

var (
	now = time.Unix(1_700_000_000, 0)
	key = sas.Key{Name: "name", Secret: "secret", Rights: sas.Send | sas.Listen}
)

// The signature in the token was computed with openssl dgst -hmac.
func TestSign_EqualsTheServiceSignature(t *testing.T) {
	token := "SharedAccessSignature sr=sb%3a%2f%2fhost%2fq&sig=%2F%2BaqrAI2TEtEx8lGzQbASKNV%2FXtFkAMX5ZktVQXC%2FmE%3D&se=1700003600&skn=name"
	_, err := sas.Keys{key}.Check(token, now)
	require.NoError(t, err)
}

func TestCheck_ReturnsTheRightsOfTheKey(t *testing.T) {
	claim, err := sas.Keys{{Name: "other", Secret: "x"}, key}.Check(key.Sign("amqps://Host:5671/Queue/", now.Add(time.Hour)), now)
	require.NoError(t, err)
	require.Equal(t, sas.Claim{Path: "queue", Rights: sas.Send | sas.Listen, Expires: now.Add(time.Hour)}, claim)
	require.True(t, claim.Covers("queue", sas.Send, now))
	require.True(t, claim.Covers("QUEUE/$management", sas.Listen, now), "and all below it")
	require.False(t, claim.Covers("queue", sas.Manage, now))
	require.False(t, claim.Covers("queue2", sas.Send, now))
	require.False(t, claim.Covers("queue", sas.Send, now.Add(time.Hour)), "its time is over")
	whole, err := sas.Keys{key}.Check(key.Sign("host", now.Add(time.Hour)), now)
	require.NoError(t, err)
	require.True(t, whole.Covers("anything", sas.Send, now))
	require.Equal(t, "Listen,Send", whole.Rights.String())
}

func TestCheck_RefusesInvalidTokens(t *testing.T) {
	good := key.Sign("sb://host/q", now.Add(time.Hour))
	for name, tc := range map[string]struct {
		token string
		want  error
	}{
		"something else":   {"Bearer x", sas.ErrMalformed},
		"no expiry":        {"SharedAccessSignature sr=a&sig=b&skn=name", sas.ErrMalformed},
		"bad escapes":      {"SharedAccessSignature sr=%zz&sig=b&se=1&skn=name", sas.ErrMalformed},
		"another name":     {sas.Key{Name: "x", Secret: "secret"}.Sign("sb://host/q", now.Add(time.Hour)), sas.ErrSignature},
		"another secret":   {sas.Key{Name: "name", Secret: "x"}.Sign("sb://host/q", now.Add(time.Hour)), sas.ErrSignature},
		"a changed expiry": {good + "0", sas.ErrSignature},
		"a later expiry":   {good[:len(good)-len("1700003600&skn=name")] + "1900000000&skn=name", sas.ErrSignature},
		"an old one":       {key.Sign("sb://host/q", now), sas.ErrExpired},
	} {
		_, err := sas.Keys{key}.Check(tc.token, now)
		require.ErrorIs(t, err, tc.want, name)
	}
	_, ok := sas.Keys{key}.Login("name", "wrong")
	require.False(t, ok)
	_, ok = sas.Keys{key}.Login("name", "secret")
	require.True(t, ok)
}
