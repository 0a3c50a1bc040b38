package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{"", "1", "-1", "99999999999999999999", "Fri, 31 Dec 1999 23:59:59 GMT", "Friday, 31-Dec-99 23:59:59 GMT"} {
		f.Add(text, "")
		f.Add(text, "Fri, 31 Dec 1999 23:00:00 GMT")
	}
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text, date string) {
		d := retryAfter(http.Header{"Retry-After": {text}, "Date": {date}}, now)
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.LessOrEqual(t, d, maxRetryAfter)
	})
}

// A form is encoded and decoded again. A receiver gets the original content.
func FuzzForm(f *testing.F) {
	f.Add("name", "value", "payload", []byte(`{}`))
	f.Add("a\"b\\", "--\r\n\r\n", "ü", []byte("\r\n--x--\r\n"))
	f.Fuzz(func(t *testing.T, name, value, field string, payload []byte) {
		s := &domain.Subscription{
			CallbackURL: "https://receiver.example", Encoding: domain.FormEncoding, FormFields: map[string]string{name: value}, PayloadFormField: field,
		}
		s.SetDefaults()
		if s.Check() != nil || !utf8.ValidString(name+field) {
			return // a subscription with these fields would be refused
		}
		body, contentType, err := encodeForm(s, payload)
		require.NoError(t, err)
		_, parameters, err := mime.ParseMediaType(contentType)
		require.NoError(t, err)
		read, err := multipart.NewReader(bytes.NewReader(body), parameters["boundary"]).ReadForm(1 << 20)
		require.NoError(t, err)
		require.Equal(t, map[string][]string{name: {value}, s.PayloadFormField: {string(payload)}}, read.Value)
	})
}

// A call from a sender without the keys is refused, whatever it contains.
func FuzzVerify(f *testing.F) {
	f.Add("msg_1", "946684800", "v1,AAAA v1a,AAAA", `Signature keyId="a\"b",signature="AAAA"`, []byte("{}"))
	f.Add("", "-1", " ,", `Signature signature="`, []byte(nil))
	now := time.Unix(946684800, 0).UTC()
	key, err := ParseVerifyKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, id, timestamp, signature, authorization string, body []byte) {
		h := http.Header{
			"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature},
			"Authorization": {authorization}, "Date": {now.Format(http.TimeFormat)},
		}
		digest := sha256.Sum256(body)
		h.Set("Digest", "SHA-256="+base64.StdEncoding.EncodeToString(digest[:]))
		for _, v := range []*Verifier{{Keys: []VerifyKey{key}}, {HMACKeys: []Key{"hush"}}} {
			_, err := v.Verify(h, body, now)
			require.Equal(t, domain.Invalid, domain.KindOf(err))
		}
	})
}

// A call is redirected to an arbitrary location. The result is either the same request to a
// permitted URL, or an error that does not contain the URL.
func FuzzLocation(f *testing.F) {
	for _, text := range []string{
		"", ":", "/", "//", "?", "#a", "/a#b", "https://example.org/a?b", "http://example.org", "//example.org/", "HTTPS://EXAMPLE.ORG:443/", "ftp://example.org/",
		"https://me:secret@example.org/", "https://169.254.169.254/", "https://[::1]/", "https://example.org%2f@example.com/", "\\\\example.org", "a:b", "javascript:1",
		"https://example.org\r\nX: y", " https://example.org", "https://exa mple.org", "https://" + strings.Repeat("a", 3000),
	} {
		f.Add(text)
	}
	c := New(Options{})
	defer c.Close()
	f.Fuzz(func(t *testing.T, location string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://receiver.example/hook", bytes.NewReader([]byte("{}")))
		require.NoError(t, err)
		req.Header.Set("Webhook-Id", "msg_1")
		resp := &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {location}}, Request: req}
		next, err := c.redirectRequest(req, resp)
		if err != nil {
			if len(location) > 20 {
				require.NotContains(t, err.Error(), location)
			}
			return
		}
		require.NoError(t, c.checkCall(next.URL.String()))
		require.Equal(t, "https", next.URL.Scheme)
		require.Nil(t, next.URL.User)
		require.NotEmpty(t, next.URL.Host)
		require.NotContains(t, next.URL.String(), "#")
		require.Equal(t, next.URL.Host, next.Host)
		require.Equal(t, http.MethodPost, next.Method)
		require.Equal(t, "msg_1", next.Header.Get("Webhook-Id"))
		body, err := io.ReadAll(next.Body)
		require.NoError(t, err)
		require.Equal(t, "{}", string(body))
	})
}
