package hubtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/hubtest"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// exampleActor is the id of the actor in the examples.
const exampleActor = "5790001330552"

// An exampleRun replaces the testing.TB that an example does not have. It stops
// the hub, and panics if the example fails.
type exampleRun struct {
	testing.TB
	cleanups []func()
}

func (*exampleRun) Helper()                        {}
func (*exampleRun) Context() context.Context       { return context.Background() }
func (r *exampleRun) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (*exampleRun) Errorf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (*exampleRun) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

// startHub starts a hub for an example. The example calls stop at its end.
func startHub(configure ...func(*config.Config)) (hub *hubtest.Hub, stop func()) {
	run := &exampleRun{}
	hub = hubtest.Start(run, configure...)
	return hub, func() {
		for _, f := range run.cleanups {
			f()
		}
	}
}

// priceEvent returns an event for exampleActor whose payload is a price.
func priceEvent(id string, price float64) hubclient.Event {
	payload, err := json.Marshal(map[string]float64{"price": price})
	exitOn(err)
	return hubclient.Event{
		ID: id, Recipient: exampleActor, Origin: "Charges", ContentType: "ChargePriceList", DocumentType: "D18",
		SupportsBundling: true, Weight: 1, Payload: payload,
	}
}

// countEvents returns the number of events in a bundle.
func countEvents(body io.Reader) int {
	var events []json.RawMessage
	exitOn(json.NewDecoder(body).Decode(&events))
	return len(events)
}

// do sends a request to a hub. If result is not nil, it decodes the response into result.
func do(hub *hubtest.Hub, method, path, body string, header http.Header, result any) {
	req, err := http.NewRequestWithContext(context.Background(), method, hub.URL+path, bytes.NewBufferString(body))
	exitOn(err)
	req.Header = header
	resp, err := hub.Client().Send(req)
	exitOn(err)
	if result != nil {
		exitOn(json.NewDecoder(resp.Body).Decode(result))
	}
	exitOn(resp.Body.Close())
}

// exitOn ends the example with a panic if err is not nil.
func exitOn(err error) {
	if err != nil {
		panic(err)
	}
}
