package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"mime"
	"mime/multipart"
	"net/http"
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

// Whatever a form holds, a receiver reads it as it was.
func FuzzForm(f *testing.F) {
	f.Add("name", "value", "payload", []byte(`{}`))
	f.Add("a\"b\\", "--\r\n\r\n", "ü", []byte("\r\n--x--\r\n"))
	f.Fuzz(func(t *testing.T, name, value, field string, payload []byte) {
		s := &domain.Subscription{
			CallbackURL: "https://receiver.example", Encoding: domain.FormEncoding, FormFields: map[string]string{name: value}, PayloadFormField: field,
		}
		s.SetDefaults()
		if s.Check() != nil || !utf8.ValidString(name+field) {
			return // no subscription has these fields
		}
		body, contentType, err := form(s, payload)
		require.NoError(t, err)
		_, parameters, err := mime.ParseMediaType(contentType)
		require.NoError(t, err)
		read, err := multipart.NewReader(bytes.NewReader(body), parameters["boundary"]).ReadForm(1 << 20)
		require.NoError(t, err)
		require.Equal(t, map[string][]string{name: {value}, s.PayloadFormField: {string(payload)}}, read.Value)
	})
}

// Whatever a sender without the keys sends, it is refused.
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
