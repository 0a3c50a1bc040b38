package webhook_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

func verifyKey(t *testing.T, text string) webhook.VerifyKey {
	t.Helper()
	k, err := webhook.ParseVerifyKey(text)
	require.NoError(t, err)
	return k
}

// signedCall returns a call with a signature of each scheme, and a verifier with the matching keys.
func signedCall(t *testing.T) (receivedCall, *webhook.Verifier) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	pair := secret(t, "whsk_"+base64.StdEncoding.EncodeToString(private))
	d := delivery("http://receiver.example/hook")
	d.Settings.HMACKeyID = `a "quoted, signature="id\`
	d.Secrets, d.HMACKey = []webhook.Secret{secret(t, oldSecret), pair}, "hush"
	return requestOf(t, d), &webhook.Verifier{Keys: []webhook.VerifyKey{verifyKey(t, pair.PublicKey())}, HMACKeys: []webhook.Key{"hush"}}
}

func TestVerifier_AcceptsEachScheme(t *testing.T) {
	r, pair := signedCall(t)
	shared := &webhook.Verifier{Keys: []webhook.VerifyKey{verifyKey(t, newSecret), verifyKey(t, oldSecret)}}
	for _, tc := range []struct {
		v    *webhook.Verifier
		want []webhook.Scheme
	}{
		{pair, []webhook.Scheme{webhook.SchemeKeyPair, webhook.SchemeHMAC}},
		{shared, []webhook.Scheme{webhook.SchemeShared}},
		{&webhook.Verifier{HMACKeys: []webhook.Key{"other", "hush"}}, []webhook.Scheme{webhook.SchemeHMAC}},
	} {
		got, err := tc.v.Verify(r.header, r.body, time.Now())
		require.NoError(t, err)
		require.Equal(t, tc.want, got)
	}
}

func TestVerifier_AcceptsWhatTheStandardLibrarySigns(t *testing.T) {
	signer, err := standardwebhooks.NewWebhook(oldSecret)
	require.NoError(t, err)
	now, body := time.Now(), []byte(`{"a":1}`)
	signature, err := signer.Sign("msg_1", now, body)
	require.NoError(t, err)
	h := http.Header{}
	h.Set("webhook-id", "msg_1")
	h.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	h.Set("webhook-signature", "v9,AAAA v1,AAAA "+signature)
	v := &webhook.Verifier{Keys: []webhook.VerifyKey{verifyKey(t, oldSecret)}}
	_, err = v.Verify(h, body, now)
	require.NoError(t, err)
}

func TestVerifier_RefusesWhatWasChanged(t *testing.T) {
	r, v := signedCall(t)
	flip := func(s string) string { // changes one letter, but not the last, whose padding bits would not matter
		i := strings.LastIndex(strings.TrimRight(s, `="`), "/") / 2
		i = max(i, len(s)-20)
		c := byte('A')
		if s[i] == c {
			c = 'B'
		}
		return s[:i] + string(c) + s[i+1:]
	}
	set := func(name string, change func(string) string) func(http.Header, *[]byte) {
		return func(h http.Header, _ *[]byte) { h.Set(name, change(h.Get(name))) }
	}
	text := func(s string) func(string) string { return func(string) string { return s } }
	only := func(part int) func(string) string { return func(s string) string { return strings.Fields(s)[part] } }
	for name, tc := range map[string]struct {
		change func(http.Header, *[]byte)
		want   string
	}{
		"body":                {func(_ http.Header, b *[]byte) { *b = append(bytes.Clone(*b), ' ') }, "none of its signatures is valid"},
		"id":                  {set("Webhook-Id", text("msg_2")), "none of its signatures is valid"},
		"no id":               {func(h http.Header, _ *[]byte) { h.Del("Webhook-Id") }, "no webhook-id"},
		"timestamp":           {set("Webhook-Timestamp", func(s string) string { return s[:9] + string('0'+(s[9]-'0'+1)%10) }), "none of its signatures is valid"},
		"timestamp with zero": {set("Webhook-Timestamp", func(s string) string { return "0" + s }), "none of its signatures is valid"},
		"no timestamp":        {set("Webhook-Timestamp", text("")), "webhook-timestamp: want"},
		"signature":           {set("Webhook-Signature", flip), "none of its signatures is valid"},
		"only by a secret":    {set("Webhook-Signature", only(0)), "none of its signatures is valid"},
		"another version":     {set("Webhook-Signature", func(s string) string { return strings.ReplaceAll(s, "v1a,", "v1,") }), "none of its signatures is valid"},
		"an empty signature":  {set("Webhook-Signature", text("v1, v1a, v1a")), "none of its signatures is valid"},
		"no signature":        {func(h http.Header, _ *[]byte) { h.Del("Webhook-Signature") }, "no webhook-signature"},
		"many signatures": {set("Webhook-Signature", func(s string) string {
			return strings.Repeat("v1a,AAAA ", 16) + s
		}), "at most 16"},
		"digest":           {set("Digest", flip), "Digest: want the SHA-256 of the body"},
		"date":             {set("Date", func(string) string { return time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat) }), "the signature in Authorization is not valid"},
		"old date":         {set("Date", func(string) string { return time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat) }), "more than 5m"},
		"no date":          {set("Date", text("")), "Date: want"},
		"authorization":    {set("Authorization", flip), "the signature in Authorization is not valid"},
		"a bearer":         {set("Authorization", text("Bearer x")), "no Authorization of the scheme"},
		"no parameter":     {set("Authorization", text(`Signature keyId="signature=",x`)), "want a signature in Base64"},
		"an open quote":    {set("Authorization", text(`Signature signature="abc`)), "want a signature in Base64"},
		"an empty hmac":    {set("Authorization", text(`Signature signature=""`)), "want a signature in Base64"},
		"no authorization": {func(h http.Header, _ *[]byte) { h.Del("Authorization") }, "no Authorization of the scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			h, body := r.header.Clone(), r.body
			tc.change(h, &body)
			_, err := v.Verify(h, body, time.Now())
			require.Equal(t, domain.Invalid, domain.KindOf(err), "%v", err)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "hush")
		})
	}
}

func TestVerifier_RefusesTheDigestOfAnotherBody(t *testing.T) {
	r, _ := signedCall(t)
	v := &webhook.Verifier{HMACKeys: []webhook.Key{"hush"}}
	_, err := v.Verify(r.header, append(bytes.Clone(r.body), ' '), time.Now())
	require.ErrorContains(t, err, "Digest")
}

func TestVerifier_RefusesOldAndFutureCalls(t *testing.T) {
	r, v := signedCall(t)
	for _, only := range []*webhook.Verifier{{Keys: v.Keys}, {HMACKeys: v.HMACKeys}} {
		for after, isValid := range map[time.Duration]bool{
			4 * time.Minute: true, -4 * time.Minute: true, 6 * time.Minute: false, -6 * time.Minute: false, 1e6 * time.Hour: false, -1e6 * time.Hour: false,
		} {
			_, err := only.Verify(r.header, r.body, time.Now().Add(after))
			require.Equal(t, isValid, err == nil, "%s: %v", after, err)
		}
		only.Tolerance = time.Hour
		_, err := only.Verify(r.header, r.body, time.Now().Add(6*time.Minute))
		require.NoError(t, err)
	}
}

func TestVerifier_WithoutKeysAcceptsNothing(t *testing.T) {
	r, _ := signedCall(t)
	for _, v := range []*webhook.Verifier{{}, {HMACKeys: []webhook.Key{""}}, {Keys: []webhook.VerifyKey{{}}}} {
		_, err := v.Verify(r.header, r.body, time.Now())
		require.Equal(t, domain.Invalid, domain.KindOf(err))
	}
}

func TestParseVerifyKey_RefusesOtherText(t *testing.T) {
	for _, text := range []string{"", "whpk_", "whpk_AAAA", "whsec_AAAA", "hush-hush-hush"} {
		_, err := webhook.ParseVerifyKey(text)
		require.Equal(t, domain.Invalid, domain.KindOf(err), text)
		require.NotContains(t, err.Error(), "hush")
	}
	k := verifyKey(t, oldSecret)
	require.Equal(t, "*** *** ***", fmt.Sprintf("%v %#v %s", k, k, k))
}

func TestSendAltered_SendsWhatWasChanged(t *testing.T) {
	n := newNetwork(t)
	var got []receivedCall
	n.add("receiver.example", "8.8.8.8", recordCalls(&got))
	c := n.client(webhook.Options{})
	r, err := c.SendAltered(t.Context(), delivery("http://receiver.example/hook"), func(req *http.Request) { req.Header.Set("X-New", "1") })
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, r.Answer.Status)
	require.Equal(t, "1", got[0].header.Get("X-New"))
}
