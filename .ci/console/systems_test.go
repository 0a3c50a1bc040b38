package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// subscriptionID is the id of the subscription of stoppedActor.
const subscriptionID = "0190b5c0-0000-7000-8000-00000000000a"

// prepareSystems creates receivers that do not respond, and objects, but no jobs.
func prepareSystems(t *testing.T, hub *server) {
	t.Helper()
	hub.callAPI(t, http.MethodPut, "/v1/subscriptions/"+subscriptionID, stoppedActor, map[string]any{"callback_url": "http://127.0.0.1:1/hook?key=secret", "topic": "orders"})
	hub.callAPI(t, http.MethodPut, "/v1/resources/prices", stoppedActor, map[string]any{"a": 1})
	admin := []string{"X-Broker-Admin-Token", adminToken, "Content-Type", "application/x-www-form-urlencoded"}
	hub.sendRequest(t, http.MethodPut, "/broker/producer/maker", "token=of-maker", admin...)
	hub.sendRequest(t, http.MethodPut, "/broker/channel/prices", "token=of-prices", admin...)
	hub.sendRequest(t, http.MethodPut, "/broker/channel/prices/consumer/shop", "token=of-shop&callbackUrl=http://127.0.0.1:1/hook", admin...)
	for i := range 3 {
		hub.sendRequest(t, http.MethodPost, "/v1/events?topic=orders", fmt.Sprintf(`{"specversion":"1.0","id":"e%d","source":"/shop","type":"made","data":{}}`, i), "Content-Type", "application/cloudevents+json", "X-Actor-Id", stoppedActor)
		hub.sendRequest(t, http.MethodPost, "/broker/channel/prices/broadcast", "text", "Content-Type", "text/plain", "X-Broker-Producer-ID", "maker", "X-Broker-Producer-Token", "of-maker", "X-Broker-Channel-Token", "of-prices")
	}
	record := `{"eventTime":"2026-03-01T12:00:00Z","eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"readings"},"object":{"key":"%3Cscript%3E%E2%80%AE-1","sequencer":"01","size":42}}}`
	hub.sendRequest(t, http.MethodPost, "/v1/object-events", `{"Records":[`+record+`]}`, "Content-Type", "application/json", "Authorization", "Bearer "+adminToken)
}

// sendRequest sends a request with a body and headers, and requires success.
func (s *server) sendRequest(t *testing.T, method, path, body string, headers ...string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, path, response.Status)
	}
}

var systemPages = []row{
	{"subscriptions", "/console/subscriptions", subscriptionID},
	{"subscriptions-of-owner", "/console/subscriptions?owner=" + stoppedActor, subscriptionID},
	{"subscription", "/console/subscriptions/" + stoppedActor + "/" + subscriptionID, "Pause the subscription"},
	{"subscription-pause", "/console/subscriptions/" + stoppedActor + "/" + subscriptionID + "/pause", "typed again"},
	{"subscription-records", "/console/subscriptions/" + stoppedActor + "/" + subscriptionID + "/records", "No operator has given an order"},
	{"delivery", "/console/subscriptions/" + stoppedActor + "/" + subscriptionID + "/deliveries/" + subscriptionID + ".0.0", "Cause"},
	{"watches", "/console/watches", "No watch is in this part"},
	{"watches-of-owner", "/console/watches?owner=" + stoppedActor, "The owner has no watch"},
	{"broker", "/console/broker", "prices/shop"},
	{"channel", "/console/broker/channels/prices", "prices/shop"},
	{"consumer", "/console/broker/channels/prices/shop", "Dead letters"},
	{"objects", "/console/objects", "Inventories"},
	{"objects-found", "/console/objects?bucket=readings", "readings"},
	{"jobs", "/console/objects/jobs/crawl", "There are no jobs."},
}

// An operator finds the systems that do not progress, and pauses a subscription, using only the
// keyboard.
func TestSystemPages(t *testing.T) {
	t.Setenv("MESSAGEHUB_PUSH_ALLOW", "127.0.0.0/8")
	t.Setenv("MESSAGEHUB_PUSH_INSECURE_HTTP", "true")
	hub := startHub(t)
	prepareSystems(t, hub)
	b := openBrowser(t, hub)
	b.signIn()
	b.checkLines("sign-in")
	for i := range systemPages {
		p := &systemPages[i]
		t.Run(p.name, func(t *testing.T) {
			b.t = t
			b.checkPage(p)
		})
		b.t = t
	}
	b.openPage("/console/subscriptions/" + stoppedActor + "/" + subscriptionID + "/pause")
	b.focusByKeyboard("#field-why")
	b.pressKeys("its owner asked for it")
	b.focusByKeyboard("#field-typed")
	b.pressKeys(stoppedActor, "\r")
	b.waitForText("The order was carried out.")
	b.waitForText("its owner asked for it")
	b.checkLines("pause")
	b.checkAxe("record of a subscription")
}
