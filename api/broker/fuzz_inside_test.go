package broker

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/messagehub/messagehub/domain"
)

func FuzzParseForm(f *testing.F) {
	f.Add("token=a&name=b&callbackUrl=https%3A%2F%2Fshop.example%2F", true)
	f.Add("token=a&token=b", false)
	f.Add("type=pull;x=%zz", true)
	f.Fuzz(func(t *testing.T, text string, isConsumer bool) {
		d, err := parseForm(text, isConsumer)
		values, parseErr := url.ParseQuery(text)
		switch {
		case err == nil && parseErr != nil:
			t.Fatalf("a form that is not one: %v", parseErr)
		case err == nil && d.Token != nil && *d.Token != values.Get("token"), err == nil && (d.Token != nil) != values.Has("token"):
			t.Fatal("another token")
		case err == nil && isConsumer && d.CallbackURL == "", err == nil && !isConsumer && d.CallbackURL != "":
			t.Fatal("consumers alone have a callback")
		}
		if token := values.Get("token"); err != nil && len(token) > 16 && strings.Contains(err.Error(), token) {
			t.Fatal("the error repeats the token")
		}
	})
}

func FuzzPriority(f *testing.F) {
	for _, text := range []string{"7", "-1", "99999999999999999999", "1.5", " 3", "", "x", "+0", "0x1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := priorityOf([]string{text})
		if err == nil && (p < 0 || p >= domain.Priorities) {
			t.Fatalf("%q is priority %d", text, p)
		}
		if err != nil && domain.KindOf(err) != domain.Invalid {
			t.Fatal(err)
		}
	})
}

func FuzzMetadata(f *testing.F) {
	f.Add("X-A, x-b", "X-A", "1")
	f.Add(",,X-Broker-Channel-Token", "X-Broker-Channel-Token", "secret")
	f.Fuzz(func(t *testing.T, list, name, value string) {
		h := http.Header{}
		h.Set(MetadataHeader, list)
		h.Set(name, value)
		for got := range metadataOf(h) {
			if got != http.CanonicalHeaderKey(got) || h.Values(got) == nil {
				t.Fatalf("%q is no header of the request", got)
			}
		}
	})
}

func FuzzPage(f *testing.F) {
	f.Add("first=m3.17&size=2")
	f.Add("first=%00&size=1000000000")
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.URL.RawQuery = query
		p, err := pageOf(r)
		if err != nil {
			return
		}
		if p.size < 1 || p.size > maxSize {
			t.Fatalf("size %d", p.size)
		}
		if e, err := p.firstEntry(); err == nil && p.first != "" && e.MessageID() != p.first {
			t.Fatalf("%q is read as %s", p.first, e.MessageID())
		}
	})
}

func FuzzPayload(f *testing.F) {
	f.Add([]byte("<a/>\n"))
	f.Add([]byte{0, 1, 0xff})
	f.Fuzz(func(t *testing.T, payload []byte) {
		text, err := json.Marshal(documentOfPayload(payload))
		if err != nil {
			t.Fatal(err)
		}
		var read payloadDocument
		if err := json.Unmarshal(text, &read); err != nil {
			t.Fatal(err)
		}
		got := read.PayloadBase64
		if read.Payload != nil {
			got = []byte(*read.Payload)
		}
		if string(got) != string(payload) {
			t.Fatalf("%q is shown as %q", payload, got)
		}
		if read.Payload != nil && !utf8.Valid(payload) {
			t.Fatal("text that is none")
		}
	})
}
