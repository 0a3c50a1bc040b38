package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain/subscribe"
)

func TestRotation_ReturnsTheGeneratedSecret(t *testing.T) {
	f := serve(t, withSubscriptions(t, subscribe.Options{Grace: time.Hour}))
	path := f.do("POST", subscriptions, `{"callback_url":"https://example.org/"}`).wants(201).header.Get("Location")
	a := f.do("POST", path+"/rotate", "").wants(200)
	made := decoded(t, a.body)["hmac_secret_key"].(string)
	require.Regexp(t, "^whsec_[A-Za-z0-9+/]{43}=$", made)
	require.NotContains(t, a.body, "previous_secret_until", "there was none before")
	a = f.do("POST", path+"/rotate", `{"hmac_secret_key":"`+hidden+`"}`).wants(200)
	require.NotContains(t, a.body, hidden)
	require.Contains(t, a.body, "previous_secret_until")
	require.NotContains(t, f.do("GET", path, "").wants(200).body, made)
	f.do("POST", path+"/rotate", "").problem(400, "invalid") // the subscription's secret is a key pair, which the hub does not generate
	for body, problem := range map[string]string{`{}`: "invalid", `{"a":1}`: "invalid", `{"hmac_secret_key":""}`: "invalid", `[]`: "not-json"} {
		f.do("POST", path+"/rotate", body).problem(400, problem)
	}
	f.do("POST", path+"/rotate", "", "X-Actor-Id", "another").problem(404, "not-found")
	f.do("POST", subscriptions+"/"+id(9)+"/rotate", "").problem(404, "not-found")
	require.NotContains(t, f.logs.String(), made)
	require.NotContains(t, f.logs.String(), hidden)
}

func TestAChangeOfASubscription_NeedsTheVersionInIfMatch(t *testing.T) {
	f := serve(t, withSubscriptions(t, subscribe.Options{}))
	path := subscriptions + "/" + id(7)
	created := f.do("PUT", path, fullDraft).wants(201)
	first := created.header.Get("ETag")
	require.Equal(t, first, f.do("GET", path, "").wants(200).header.Get("ETag"))
	second := f.do("POST", path+"/pause", "").wants(200).header.Get("ETag")
	require.NotEqual(t, first, second)
	changed := `{"topic":"orders","callback_url":"https://example.org/other"}`
	for _, tag := range []string{first, `"other"`, `W/` + second, `other`, `"!"`, `""`} {
		a := f.do("PUT", path, changed, "If-Match", tag)
		a.problem(412, "precondition-failed")
		require.Contains(t, a.body, "Read it, and repeat the request with its ETag")
		f.do("DELETE", path, "", "If-Match", tag).problem(412, "precondition-failed")
		f.do("POST", path+"/rotate", `{"hmac_secret_key":"other"}`, "If-Match", tag).problem(412, "precondition-failed")
	}
	f.do("PUT", subscriptions+"/"+id(8), changed, "If-Match", "*").problem(412, "precondition-failed")
	third := f.do("PUT", path, changed, "If-Match", first+", "+second).wants(200).header.Get("ETag")
	require.Equal(t, third, f.do("PUT", path, changed, "If-Match", second).wants(200).header.Get("ETag"), "it was repeated")
	fourth := f.do("POST", path+"/rotate", `{"hmac_secret_key":"other"}`, "If-Match", third).wants(200).header.Get("ETag")
	f.do("DELETE", path, "", "If-Match", fourth).wants(200)
	f.do("DELETE", path, "", "If-Match", fourth).problem(404, "not-found")
}
