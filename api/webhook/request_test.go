package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

const payload = `{"transaction_id":"msg_1","subscription_id":"s-1","event":{"data":{"n":1},"datacontenttype":"application/json","id":"e-1","type":"t"}}`

func TestARequest_HasTheFormOfItsSubscription(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		d := delivery("http://receiver.example/hook")
		d.Settings.Method = method
		r := requestOf(t, d)
		require.Equal(t, method, r.method)
		require.Equal(t, "application/json", r.header.Get("Content-Type"))
		require.Equal(t, payload, string(r.body))
		require.Empty(t, r.header.Get("Authorization"))
		require.Empty(t, r.header.Get("webhook-signature"))

		d.Settings.Encoding = domain.FormEncoding
		d.Settings.FormFields = map[string]string{"a": "1", "b": "ü\n"}
		d.Settings.PayloadFormField = "notification"
		r = requestOf(t, d)
		again := requestOf(t, d)
		require.Equal(t, string(r.body), string(again.body), "each attempt has the same body")
		require.Equal(t, method, r.method)
		mediaType, parameters, err := mime.ParseMediaType(r.header.Get("Content-Type"))
		require.NoError(t, err)
		require.Equal(t, "multipart/form-data", mediaType)
		fields := make(map[string]string)
		for parts := multipart.NewReader(bytes.NewReader(r.body), parameters["boundary"]); ; {
			part, err := parts.NextPart()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.NotContains(t, fields, part.FormName())
			value, err := io.ReadAll(part)
			require.NoError(t, err)
			fields[part.FormName()] = string(value)
		}
		require.Equal(t, map[string]string{"a": "1", "b": "ü\n", "notification": payload}, fields)
	}
}

func TestBody_ContainsTheMessage(t *testing.T) {
	for _, tc := range []struct {
		name, contentType, payload, want string
	}{
		{"JSON", "application/json; charset=utf-8", `[1.0]`, `"data":[1.0]`},
		{"JSON of its own type", "application/cloud+json", `1e400`, `"data":1e400`},
		{"JSON without a type", "", `"a"`, `"data":"a"`},
		{"broken JSON", "application/json", `{`, `"data_base64":"ew=="`},
		{"other data", "text/plain", `a`, `"data_base64":"YQ=="`},
		{"a type that cannot be read", ";;", `1`, `"data_base64":"MQ=="`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := delivery("http://receiver.example/hook")
			d.Message = &domain.Message{Attributes: map[string]string{"data": "x", "data_base64": "x", "id": "own"}, ContentType: tc.contentType, Payload: []byte(tc.payload)}
			d.Settings.Filter, d.Attachments = "a == `1`", json.RawMessage(`{"x":null}`)
			body := string(requestOf(t, d).body)
			require.Contains(t, body, tc.want)
			require.Contains(t, body, `"id":"own"`)
			require.Contains(t, body, `"attachments":{"x":null}`)
			require.Contains(t, body, "\"jmespath_query\":\"a == `1`\"")
			require.NotContains(t, body, `"x",`)
		})
	}
	d := delivery("http://receiver.example/hook")
	d.Message = &domain.Message{}
	require.Contains(t, string(requestOf(t, d).body), `"event":{}`)
}

// The stored headers of a subscription contain a header that the hub sets. The call has the hub's
// value, even if the stored header was once allowed.
func TestHeadersOfAUser_DoNotReplaceHeadersOfTheHub(t *testing.T) {
	d := delivery("http://receiver.example/hook")
	d.Headers = map[string]string{"X-Mine": "1", "Authorization": "Bearer x"}
	require.NoError(t, webhook.CheckHeaders(d.Headers))
	ours := []string{
		"webhook-id", "Webhook-Timestamp", "WEBHOOK-SIGNATURE", "x-dss-notify-attempt", "X-Broker-Token", "Content-Type", "content-length", "Host",
		"Date", "digest", "User-Agent", "Accept-Encoding", "Transfer-Encoding", "Connection", "Upgrade", "Proxy-Authorization", "TE", "Expect",
		"", "a b", "a:b", "ü", strings.Repeat("a", 65),
	}
	for _, name := range ours {
		err := webhook.CheckHeaders(map[string]string{name: "evil"})
		require.Equal(t, domain.Invalid, domain.KindOf(err), name)
		require.True(t, strings.HasPrefix(err.Error(), "/headers/"))
		d.Headers[name] = "evil"
	}
	for _, value := range []string{"a\r\nb", "\x00", strings.Repeat("x", webhook.MaxHeaderValue+1)} {
		err := webhook.CheckHeaders(map[string]string{"X-Other": value})
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.NotContains(t, err.Error(), value)
		d.Headers["X-Other"] = value
	}
	many := make(map[string]string)
	for i := range webhook.MaxHeaders + 1 {
		many["X-"+strings.Repeat("a", i+1)] = ""
	}
	require.ErrorContains(t, webhook.CheckHeaders(many), "/headers: want at most 16")
	clear(many)
	for i := range 8 {
		many["X-"+strings.Repeat("a", i+1)] = strings.Repeat("v", webhook.MaxHeaderValue)
	}
	require.ErrorContains(t, webhook.CheckHeaders(many), "/headers: want at most 8192 bytes")
	require.ErrorContains(t, webhook.CheckHeaders(map[string]string{"X-Mine": "1", "x-mine": "2"}), "/headers/x-mine: it occurs twice")

	d.Secrets = []webhook.Secret{secret(t, oldSecret)}
	r := requestOf(t, d)
	require.Equal(t, "1", r.header.Get("X-Mine"))
	require.Equal(t, "Bearer x", r.header.Get("Authorization"))
	for name, values := range r.header {
		require.NotContains(t, values, "evil", name)
	}
	require.Empty(t, r.header.Get("X-Other"))
}

func TestDeliveryID_DependsOnTheEntryAndTheReceiver(t *testing.T) {
	cursor, err := domain.ParseCursorID("s|1")
	require.NoError(t, err)
	other, err := domain.ParseCursorID("s|2")
	require.NoError(t, err)
	topic, err := domain.ParseTopic("a")
	require.NoError(t, err)
	at := time.UnixMicro(1)
	id := webhook.DeliveryID(cursor, topic, domain.EntryID{Number: 1}, at)
	require.Regexp(t, `^msg_[0-9a-f]{32}$`, id)
	require.Equal(t, id, webhook.DeliveryID(cursor, topic, domain.EntryID{Number: 1}, at.Add(time.Nanosecond).UTC()))
	require.NotEqual(t, id, webhook.DeliveryID(other, topic, domain.EntryID{Number: 1}, at))
	require.NotEqual(t, id, webhook.DeliveryID(cursor, topic, domain.EntryID{Number: 2}, at))
	require.NotEqual(t, id, webhook.DeliveryID(cursor, topic, domain.EntryID{Priority: 1, Number: 1}, at))
	require.NotEqual(t, id, webhook.DeliveryID(cursor, topic, domain.EntryID{Number: 1}, at.Add(time.Second)), "a stream of the same name")
}
