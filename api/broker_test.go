package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/hub"
)

func refusePrivateURLs(_ context.Context, url string) error {
	if strings.Contains(url, "169.254.") {
		return errPrivate
	}
	return nil
}

// Routes of the broker, with the credentials that they accept.
var brokerRoutes = []struct {
	method, path string
	creds        []string // credentials that the route accepts
	unknown      string   // path of the same route with a party that does not exist
}{
	{"PUT", "/producer/maker", asOperator, ""},
	{"GET", "/producer/maker", asOperator, "/producer/other"},
	{"GET", "/producers", asOperator, ""},
	{"PUT", "/channel/prices", asOperator, ""},
	{"GET", "/channel/prices", asReader, "/channel/other"},
	{"GET", "/channels", asOperator, ""},
	{"PUT", "/channel/prices/consumer/shop", asOperator, "/channel/other/consumer/shop"},
	{"GET", "/channel/prices/consumer/shop", asReader, "/channel/prices/consumer/other"},
	{"GET", "/channel/prices/consumers", asReader, "/channel/other/consumers"},
	{"POST", "/channel/prices/broadcast", asProducer, ""},
	{"GET", "/channel/prices/messages", asReader, "/channel/other/messages"},
	{"GET", "/channel/prices/message/m0.0", asReader, "/channel/other/message/m0.0"},
	{"GET", "/overdue", asOperator, ""},
	{"GET", "/channel/prices/consumer/shop/dlq", asConsumer, "/channel/prices/consumer/other/dlq"},
	{"POST", "/channel/prices/message/m0.0/re-trigger", asOperator, "/channel/other/message/m0.0/re-trigger"},
	{"POST", "/channel/prices/message/m0.0/job/shop/re-trigger", asConsumer, "/channel/prices/message/m0.0/job/other/re-trigger"},
	{"GET", "/channel/prices/consumer/shop/peek", asConsumer, "/channel/prices/consumer/other/peek"},
	{"DELETE", "/channel/prices/consumer/shop/dequeue/b", asConsumer, "/channel/prices/consumer/other/dequeue/b"},
}

// ask sends a request that is valid except, perhaps, for its credentials.
func (f *hubFixture) ask(method, path string, creds []string) domainAnswer {
	body, headers := "", creds
	if method == "PUT" {
		body = "token=x"
		if strings.Contains(path, "/consumer/") {
			body += "&callbackUrl=https://shop.example/"
		}
		headers = append([]string{"Content-Type", formType}, creds...)
	}
	return f.do(method, "/broker"+path, body, headers...)
}

func TestEachRouteOfTheBrokerNeedsItsCredentials(t *testing.T) {
	f := serve(t, withBroker(t), fixedRequestIDs, func(o *api.Options, _ *hub.Options) { o.Limits.FailedLogins = 1000 })
	f.putShop()
	f.broadcast("x")
	wrong := []string{
		"X-Broker-Channel-Token", "wrong", "X-Broker-Producer-ID", "maker", "X-Broker-Producer-Token", "wrong", "X-Broker-Consumer-Token", "wrong",
	}
	for _, r := range brokerRoutes {
		a := f.ask(r.method, r.path, nil)
		a.problem(401, "missing-credentials")
		require.Equal(t, "Bearer", a.header.Get("WWW-Authenticate"))
		f.ask(r.method, r.path, []string{"X-Broker-Admin-Token", "wrong"}).problem(403, "wrong-credentials")
		if r.creds[0] == asOperator[0] {
			continue
		}
		// Without a token, a caller gets the same response whether the party exists or not.
		refused := f.ask(r.method, r.path, wrong)
		refused.problem(403, "wrong-credentials")
		if r.unknown != "" {
			unknown := f.ask(r.method, r.unknown, wrong)
			require.Equal(t, refused.status, unknown.status)
			require.Equal(t, refused.body, unknown.body)
		}
		require.NotContains(t, []int{401, 403}, f.ask(r.method, r.path, r.creds).status, r.path)
	}
}

func TestOrdersAboutUnknownThingsAreNotFound(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	for _, r := range brokerRoutes {
		if r.unknown == "" {
			continue
		}
		f.ask(r.method, r.unknown, asOperator).problem(404, "not-found")
		f.ask(r.method, r.unknown, []string{"Authorization", "Bearer " + token}).problem(404, "not-found")
	}
}

func TestBroker_NeverShowsOrLogsTokens(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	path := f.broadcast("x")
	for _, r := range brokerRoutes {
		for _, creds := range [][]string{r.creds, asOperator} {
			a := f.ask(r.method, r.path, creds)
			for _, secret := range []string{"of-maker", "of-prices", "of-shop", token} {
				require.NotContains(t, a.body, secret)
			}
		}
	}
	f.do("GET", path, "", "X-Broker-Channel-Token", "of-pricey").problem(403, "wrong-credentials")
	for _, secret := range []string{"of-maker", "of-prices", "of-shop", "of-pricey", token} {
		require.NotContains(t, f.logs.String(), secret)
	}
}

func TestBroker_CountsWrongTokensOfOperators(t *testing.T) {
	f := serve(t, withBroker(t), func(o *api.Options, _ *hub.Options) { o.Clock = func() time.Time { return time.Unix(0, 0) } })
	for range 10 {
		f.do("GET", "/broker/producers", "", "X-Broker-Admin-Token", "wrong").problem(403, "wrong-credentials")
	}
	f.do("GET", "/broker/producers", "", "Authorization", "Bearer wrong").problem(429, "too-many-logins")
	f.do("GET", "/broker/channel/prices", "", asReader...).problem(403, "wrong-credentials")
}

func TestBroker_NamesTheInvalidField(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	consumer := "/broker/channel/prices/consumer/shop"
	for _, tc := range []struct {
		what, method, path, body string
		status                   int
		problem, field           string
		headers                  []string
	}{
		{"no callback", "PUT", consumer, "token=x", 400, "invalid", "/callbackUrl", nil},
		{"a relative callback", "PUT", consumer, "token=x&callbackUrl=/hook", 400, "invalid", "/callbackUrl", nil},
		{"a callback with credentials", "PUT", consumer, "callbackUrl=https://a:b@shop.example/", 400, "invalid", "/callbackUrl", nil},
		{"a callback in a private network", "PUT", consumer, "callbackUrl=http://169.254.169.254/", 400, "invalid", "/callbackUrl", nil},
		{"a type that is not push", "PUT", consumer, "type=pull&callbackUrl=https://shop.example/", 400, "invalid", "/type", nil},
		{"an unknown field", "PUT", consumer, "callbackURL=https://shop.example/", 400, "invalid", "/callbackURL", nil},
		{"a field twice", "PUT", "/broker/producer/maker", "token=a&token=b", 400, "invalid", "/token", nil},
		{"an empty token", "PUT", "/broker/producer/maker", "token=", 400, "invalid", "/token", nil},
		{"a token with a blank", "PUT", "/broker/producer/maker", "token=a+b", 400, "invalid", "/token", nil},
		{"a long token", "PUT", "/broker/producer/maker", "token=" + strings.Repeat("x", 257), 400, "invalid", "/token", nil},
		{"a long name", "PUT", "/broker/producer/maker", "name=" + strings.Repeat("x", 257), 400, "invalid", "/name", nil},
		{"no form", "PUT", "/broker/producer/maker", "token=%zz", 400, "invalid", "", nil},
		{"an id with a letter that ids have not", "PUT", "/broker/producer/m%25r", "token=x", 400, "invalid", "", nil},
		{"an id that is too long", "PUT", "/broker/channel/" + strings.Repeat("x", 65), "token=x", 400, "invalid", "", nil},
		{"a form in another type", "PUT", "/broker/producer/maker", "token=x", 415, "unsupported-media-type", "", []string{"Content-Type", "text/plain"}},
		{"a form in another charset", "PUT", "/broker/producer/maker", "token=x", 415, "unsupported-media-type", "", []string{"Content-Type", formType + "; charset=latin1"}},
		{"a compressed form", "PUT", "/broker/producer/maker", "token=x", 415, "unsupported-media-type", "", []string{"Content-Encoding", "gzip"}},
		{"a form that is too large", "PUT", "/broker/producer/maker", "token=" + strings.Repeat("x", 64<<10+1-len("token=")), 413, "body-too-large", "", nil},
		{"a bad date", "PUT", "/broker/producer/maker", "token=x", 400, "invalid", "", []string{"If-Unmodified-Since", "yesterday"}},
		{"two dates", "PUT", "/broker/producer/maker", "token=x", 400, "invalid", "", []string{"If-Unmodified-Since", time.Now().UTC().Format(http.TimeFormat), "If-Unmodified-Since", time.Now().UTC().Format(http.TimeFormat)}},
		{"size 0", "GET", "/broker/producers?size=0", "", 400, "invalid", "", nil},
		{"a negative size", "GET", "/broker/channels?size=-1", "", 400, "invalid", "", nil},
		{"a huge size", "GET", "/broker/channel/prices/consumers?size=1000000000", "", 400, "invalid", "", nil},
		{"an unknown parameter", "GET", "/broker/producers?next=1", "", 400, "invalid", "", nil},
		{"a page token made by hand", "GET", "/broker/producers?first='%20OR%201", "", 400, "invalid", "", nil},
		{"a page token of messages made by hand", "GET", "/broker/channel/prices/messages?first=zzz", "", 400, "invalid", "", nil},
		{"a negative delay", "GET", "/broker/overdue?delay=-1s", "", 400, "invalid", "", nil},
		{"a delay without a unit", "GET", "/broker/overdue?delay=2", "", 400, "invalid", "", nil},
		{"a page token of overdue jobs made by hand", "GET", "/broker/overdue?first=zzz", "", 400, "invalid", "", nil},
		{"a size of overdue jobs", "GET", "/broker/overdue?size=5", "", 400, "invalid", "", nil},
		{"a bad time", "GET", "/broker/channel/prices/messages?statusChangedSince=yesterday", "", 400, "invalid", "", nil},
		{"too much to peek", "GET", consumer + "/peek?size=33", "", 400, "invalid", "", nil},
		{"DELETE", "DELETE", consumer, "", 405, "method-not-allowed", "", nil},
	} {
		t.Run(tc.what, func(t *testing.T) {
			headers := append([]string{}, asOperator...)
			if tc.method == "PUT" && (len(tc.headers) == 0 || tc.headers[0] != "Content-Type") {
				headers = append(headers, "Content-Type", formType)
			}
			p := f.do(tc.method, tc.path, tc.body, append(headers, tc.headers...)...).problem(tc.status, tc.problem)
			if tc.field != "" {
				require.Equal(t, []string{tc.field}, p.pointers())
			}
		})
	}
	require.NotContains(t, f.logs.String(), "secret")
}

func TestBadBroadcastsAreRefused(t *testing.T) {
	f := serve(t, withBroker(t, func(_ *broker.Ports, o *broker.Options) {
		o.CheckHeaders = func(headers map[string]string) error {
			for name := range headers {
				if strings.HasPrefix(name, "X-Broker-") {
					return errOwnHeader
				}
			}
			return nil
		}
	}))
	f.putShop()
	for what, tc := range map[string]struct {
		status  int
		problem string
		body    string
		headers []string
	}{
		"a priority that is no integer": {400, "invalid", "x", []string{"X-Broker-Message-Priority", "high"}},
		"a fractional priority":         {400, "invalid", "x", []string{"X-Broker-Message-Priority", "1.5"}},
		"two priorities":                {400, "invalid", "x", []string{"X-Broker-Message-Priority", "1", "X-Broker-Message-Priority", "2"}},
		"an id in the form of ours":     {400, "invalid", "x", []string{"X-Broker-Message-ID", idOf(f.broadcast("x"))}},
		"one of our headers":            {400, "invalid", "x", []string{"X-Broker-Metadata-Headers", "X-Broker-Channel-Token"}},
		"a compressed body":             {415, "unsupported-media-type", "x", []string{"Content-Encoding", "gzip"}},
		"a large body":                  {413, "body-too-large", strings.Repeat("x", 1<<20+1), nil},
	} {
		t.Run(what, func(t *testing.T) {
			f.do("POST", "/broker/channel/prices/broadcast", tc.body, append(append([]string{"Content-Type", "text/plain"}, asProducer...), tc.headers...)...).problem(tc.status, tc.problem)
		})
	}
}

func TestIDsThatLookAlikeAreDifferentIDs(t *testing.T) {
	f := serve(t, withBroker(t))
	for _, name := range []string{"order_1", "orderA1", "ordera1", "ORDERA1", "order.1", "order-1"} {
		f.put("/producer/"+name, "token", "of-"+name).wants(201)
	}
	require.Equal(t, []string{"ORDERA1", "order-1", "order.1", "orderA1", "order_1", "ordera1"}, idsOf(f.show("/broker/producers", asOperator)["producers"]))
	f.putShop()
	first := f.broadcast("1", "X-Broker-Message-ID", "order_1")
	require.NotEqual(t, first, f.broadcast("2", "X-Broker-Message-ID", "orderA1"))
	require.Equal(t, "1", f.show("/broker/channel/prices/message/order_1", asReader)["payload"])
	f.do("GET", "/broker/channel/prices/message/order%25", "", asReader...).problem(404, "not-found")
}

func TestPayloadsAreShownUnchanged(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	for payload, want := range map[string][2]string{
		"":                      {"payload", ""},
		`<a b="c">é</a>` + "\n": {"payload", `<a b="c">é</a>` + "\n"},
		"\x00\x01":              {"payloadBase64", "AAE="},
		"\xff":                  {"payloadBase64", "/w=="},
	} {
		shown := f.show(f.broadcast(payload), asReader)
		require.Equal(t, want[1], shown[want[0]], "%q", payload)
	}
}

func fixedRequestIDs(o *api.Options, _ *hub.Options) {
	o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
}

func TestAConsumerOfAnotherChannelHasNoAccess(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	f.put("/channel/other", "token", "of-other").wants(201)
	f.put("/channel/other/consumer/shop", "token", "of-the-other-shop", "callbackUrl", "https://shop.example/").wants(201)
	path := f.broadcast("x")
	for _, r := range [][2]string{
		{"GET", "/broker/channel/prices/consumer/shop/dlq"},
		{"GET", "/broker/channel/prices/consumer/shop/peek"},
		{"DELETE", "/broker/channel/prices/consumer/shop/dequeue/b"},
		{"POST", path + "/job/shop/re-trigger"},
	} {
		f.do(r[0], r[1], "", "X-Broker-Consumer-Token", "of-the-other-shop").problem(403, "wrong-credentials")
	}
	f.do("GET", path, "", "X-Broker-Channel-Token", "of-other").problem(403, "wrong-credentials")
	f.do("GET", "/broker/channel/other/message/"+idOf(path), "", "X-Broker-Channel-Token", "of-other").problem(404, "not-found")
}
