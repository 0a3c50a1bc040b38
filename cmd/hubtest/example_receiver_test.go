package hubtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"

	"github.com/messagehub/messagehub/cmd/hubtest"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// A receiver subscribes to a topic. The hub calls the receiver with each event
// that matches the filter of the subscription.
func Example_subscription() {
	hub, stop := startHub(func(cfg *config.Config) {
		cfg.Push.Allow, cfg.Push.InsecureHTTP = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true // permits calls to this machine, and without TLS
	})
	defer stop()
	received := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var call struct{ Event struct{ ID string } }
		exitOn(json.NewDecoder(r.Body).Decode(&call))
		received <- call.Event.ID
	}))
	defer receiver.Close()

	do(hub, "POST", "/v1/subscriptions",
		`{"callback_url": "`+receiver.URL+`", "topic": "orders", "jmespath_query": "data.kwh > `+"`1`"+`"}`,
		http.Header{"X-Actor-Id": {exampleActor}, "Content-Type": {"application/json"}}, nil)
	for id, kwh := range map[string]string{"16": "0.5", "17": "1.5"} {
		do(hub, "POST", "/v1/events?topic=orders",
			`{"specversion": "1.0", "id": "`+id+`", "source": "/orders", "type": "made", "data": {"kwh": `+kwh+`}}`,
			http.Header{"Content-Type": {"application/cloudevents+json"}}, nil)
	}
	fmt.Println("received:", <-received)
	// Output: received: 17
}

// A store reports that an object was created. A query returns the object.
func Example_objectQuery() {
	hub, stop := startHub()
	defer stop()
	header := http.Header{"Authorization": {"Bearer " + hubtest.AdminToken}, "Content-Type": {"application/json"}}
	do(hub, "POST", "/v1/object-events",
		`{"Records": [{"eventName": "ObjectCreated:Put", "eventTime": "2026-03-01T12:00:00Z",
		  "s3": {"bucket": {"name": "readings"}, "object": {"key": "march/7.csv", "size": 512, "sequencer": "0055AED6DCD90281E5"}}}]}`,
		header, nil)
	var found struct {
		Results []struct {
			Key  string
			Size int64
		}
	}
	do(hub, "GET", "/v1/objects?bucket=readings&key=march/*", "", header, &found)
	for _, object := range found.Results {
		fmt.Println(object.Key, object.Size)
	}
	// Output: march/7.csv 512
}
