package webhook_test

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" // secret from the example in the Standard Webhooks specification
	newSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// A receivedCall is a request that a receiver has received.
type receivedCall struct {
	method string
	header http.Header
	body   []byte
}

// recordCalls returns a connection handler that records each request and responds with 204.
func recordCalls(into *[]receivedCall) func(net.Conn) {
	return func(conn net.Conn) {
		for {
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				return
			}
			*into = append(*into, receivedCall{req.Method, req.Header, body})
			if _, err := conn.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n")); err != nil {
				return
			}
		}
	}
}

// requestOf sends a delivery, and returns the request that the receiver receives.
func requestOf(t *testing.T, d *webhook.Delivery) receivedCall {
	t.Helper()
	n := newNetwork(t)
	var got []receivedCall
	n.add("receiver.example", "8.8.8.8", recordCalls(&got))
	c := n.client(webhook.Options{})
	require.Equal(t, http.StatusNoContent, send(t, c, d).Answer.Status)
	require.Len(t, got, 1)
	return got[0]
}

func secret(t *testing.T, text string) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(text)
	require.NoError(t, err)
	return s
}

func TestASignature_FollowsStandardWebhooks(t *testing.T) {
	d := delivery("http://receiver.example/hook")
	d.Secrets = []webhook.Secret{secret(t, newSecret), secret(t, oldSecret)}
	r := requestOf(t, d)
	require.Equal(t, "msg_1", r.header.Get("webhook-id"))
	for _, text := range []string{oldSecret, newSecret} { // the receiver knows only one of the two secrets
		verifier, err := standardwebhooks.NewWebhook(text)
		require.NoError(t, err)
		require.NoError(t, verifier.Verify(r.body, r.header))
		require.Error(t, verifier.Verify(bytes.Replace(r.body, []byte("1"), []byte("2"), 1), r.header))
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			tampered := r.header.Clone()
			tampered.Set(name, strings.Map(func(c rune) rune {
				if c == '1' {
					return '2'
				}
				return c
			}, r.header.Get(name))+"0")
			require.Error(t, verifier.Verify(r.body, tampered), name)
		}
		late := r.header.Clone()
		late.Set("webhook-timestamp", fmt.Sprint(time.Now().Add(-time.Hour).Unix()))
		require.Error(t, verifier.Verify(r.body, late))
	}
	other, err := standardwebhooks.NewWebhook("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	require.NoError(t, err)
	require.Error(t, other.Verify(r.body, r.header))
}

func TestASignature_ByAKeyPairIsVerifiedByThePublicKey(t *testing.T) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	whole := secret(t, "whsk_"+base64.StdEncoding.EncodeToString(private))
	seed := secret(t, "whsk_"+base64.StdEncoding.EncodeToString(private.Seed()))
	require.Equal(t, whole.PublicKey(), seed.PublicKey())
	d := delivery("http://receiver.example/hook")
	d.Secrets = []webhook.Secret{whole, secret(t, oldSecret)}
	r := requestOf(t, d)
	first, second, found := strings.Cut(r.header.Get("webhook-signature"), " ")
	require.True(t, found)
	require.True(t, strings.HasPrefix(second, "v1,"))
	signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(first, "v1a,"))
	require.NoError(t, err)
	public, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(whole.PublicKey(), "whpk_"))
	require.NoError(t, err)
	message := append([]byte("msg_1."+r.header.Get("webhook-timestamp")+"."), r.body...)
	require.True(t, ed25519.Verify(public, message, signature))
	require.False(t, ed25519.Verify(public, append(message, 'x'), signature))
	require.Empty(t, secret(t, oldSecret).PublicKey())
}

func TestParseSecret_RefusesOtherText(t *testing.T) {
	short := base64.StdEncoding.EncodeToString(make([]byte, 23))
	long := base64.StdEncoding.EncodeToString(make([]byte, 65))
	mixed := base64.StdEncoding.EncodeToString(append(make([]byte, 32), bytes.Repeat([]byte{9}, 32)...))
	for _, text := range []string{"", "whsec_", "whsec_*", "whsec_" + short, "whsec_" + long, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsk_" + short, "whsk_" + mixed, "whpk_" + mixed} {
		_, err := webhook.ParseSecret(text)
		require.Equal(t, domain.Invalid, domain.KindOf(err), text)
		if len(text) > 6 {
			require.NotContains(t, err.Error(), text[6:])
		}
	}
}

func TestSecrets_PrintAsStars(t *testing.T) {
	d := delivery("http://receiver.example")
	d.Secrets, d.HMACKey = []webhook.Secret{secret(t, oldSecret)}, "hush-hush"
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(oldSecret, "whsec_"))
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", d.Secrets[0], "key", d.HMACKey, "delivery", d)
	encoded, err := json.Marshal(d)
	require.NoError(t, err)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", *d, *d, *d, d.Secrets[0]), log.String(), string(encoded)} {
		for _, hidden := range []string{"hush", fmt.Sprintf("%d", raw), hex.EncodeToString(raw), oldSecret[6:]} {
			require.NotContains(t, text, hidden)
		}
		require.Contains(t, text, "***")
	}
}

// The HMAC signature of a call is verified as the receivers of the original verify it.
func TestAuthorization_SignsDateAndDigest(t *testing.T) {
	for keyID, want := range map[string]string{"": "hca-dss:s-1", "mine": "mine", `a"b\c`: `a\"b\\c`} {
		d := delivery("http://receiver.example/hook")
		d.HMACKey, d.Settings.HMACKeyID, d.Attempts = "hush", keyID, 3
		d.Headers = map[string]string{"Authorization": "Bearer x"}
		r := requestOf(t, d)
		require.Equal(t, "3", r.header.Get("X-dss-notify-attempt"))
		digest := sha256.Sum256(r.body)
		require.Equal(t, "SHA-256="+base64.StdEncoding.EncodeToString(digest[:]), r.header.Get("Digest"))
		date, err := http.ParseTime(r.header.Get("Date"))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), date, time.Minute)
		mac := hmac.New(sha256.New, []byte("hush"))
		fmt.Fprintf(mac, "date: %s\ndigest: %s", r.header.Get("Date"), r.header.Get("Digest"))
		require.Equal(t, fmt.Sprintf(`Signature keyId="%s",algorithm="hmac-sha256",headers="date digest",signature="%s"`,
			want, base64.StdEncoding.EncodeToString(mac.Sum(nil))), r.header.Get("Authorization"))
	}
}
