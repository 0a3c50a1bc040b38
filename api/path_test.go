package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// In each pair, the first path names an existing resource. The second path must not: it would name
// the same resource only if it were decoded twice.

func TestAPath_IsDecodedOnce(t *testing.T) {
	f := serveLetters(t, &letterBus{letters: 3})
	f.doUnvalidated("GET", letters+"/a%2Fb/2?"+whoWhy, "", 200)
	f.doUnvalidated("GET", letters+"/a%252Fb/2?"+whoWhy, "", 404)
	f.doUnvalidated("GET", letters+"/a+b/2?"+whoWhy, "", 404)

	f = serve(t)
	f.post(202, newEvent(1))
	f.doUnvalidated("GET", "/v1/peek/%74imeseries", "", 200)
	f.doUnvalidated("GET", "/v1/peek/%2574imeseries", "", 404)
	f.doUnvalidated("GET", "/v1/peek/time+series", "", 404)
	f.doUnvalidated("POST", "/v1/admin/queues/5790001330552/replay", `{"who":"kim","why":"ticket","group":"%74imeseries"}`, 404)
}

func TestAPath_OfAResourceIsDecodedOnce(t *testing.T) {
	f := serveWatches(t)
	resp, body := f.requestAsActor("PUT", "/v1/resources/price%2Elist", `{}`)
	require.Equal(t, 201, resp.StatusCode, body)
	resp, body = f.requestAsActor("GET", "/v1/resources/price%252Elist", "")
	require.Equal(t, 400, resp.StatusCode, body)
	resp, body = f.requestAsActor("GET", "/v1/resources/100%25", "")
	require.Equal(t, 400, resp.StatusCode, body)
}

func TestAPath_OfTheBrokerIsDecodedOnce(t *testing.T) {
	f := serve(t, withBroker(t))
	f.putShop()
	f.broadcast("1", "X-Broker-Message-ID", "order_1")
	f.do("GET", "/broker/channel/prices/message/order%5F1", "", asReader...).wants(200)
	f.do("GET", "/broker/channel/prices/message/order%255F1", "", asReader...).problem(404, "not-found")
	f.do("GET", "/broker/channel/prices/message/order+1", "", asReader...).problem(404, "not-found")
}

func TestAPathOfTheOriginal_IsDecodedOnce(t *testing.T) {
	f := serve(t)
	f.doUnvalidated("GET", "/API/%50eek/timeSeries/", "", 204)
	for _, path := range []string{"/api/%2570eek", "/api/peek%2Ftimeseries", "/api/peek%2ftimeseries", "/api%2Fpeek", "/api/peek%252Ftimeseries", "/api/peek%2F", "/api/peek+timeseries", "/api/peek%25"} {
		f.doUnvalidated("GET", path, "", 404)
	}
	bundle := id(71)
	f.post(202, newEvent(1))
	f.doUnvalidated("GET", "/api/peek?bundle%49d="+bundle[:8]+"%2D"+bundle[9:], "", 200)
	for _, query := range []string{bundle[:8] + "%252D" + bundle[9:], bundle + "%252B", "%2B" + bundle, "%2F" + bundle} {
		f.doUnvalidated("DELETE", "/api/dequeue?bundleId="+query, "", 400)
	}
	f.doUnvalidated("DELETE", "/api/dequeue?bundleId=+"+bundle+"%20", "", 200)
}
