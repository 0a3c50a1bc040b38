package simulate

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// The functions below send requests of additional clients to a corrupted mailbox.

// publishConcurrently sends events of a second domain to the same recipient.
func (b *corruptedMailbox) publishConcurrently() {
	colleague := b.corruptor.sim.newClient("another domain of "+b.name, b.colleagues.Add(1))
	for range 3 {
		b.sendRequest(&colleague, http.MethodPost, "/v1/data-available", encodeEvents(b.newEvents()))
	}
}

// publishByBus sends events of a second domain over the bus.
func (b *corruptedMailbox) publishByBus() {
	colleague := b.corruptor.sim.newClient("a domain of "+b.name+" on the bus", b.colleagues.Add(1))
	queue := []string{"", contract.DataAvailableQueue}[colleague.rng.IntN(2)]
	a, err := colleague.newBusPublisher(domainclient.JSON, queue)
	if err != nil {
		b.corruptor.sim.Fail(err)
		return
	}
	defer func() { a.closeClient(false) }()
	for range 3 {
		if !a.publishEvents(b.newEvents()) {
			return
		}
	}
}

// noteOpenBundles records the ids of the open bundles in an operator's view of the queue, including bundles without
// content.
func (b *corruptedMailbox) noteOpenBundles(r *hubReply) {
	var queue struct {
		Groups []struct{ Open *struct{ BundleID string } }
	}
	if r == nil || json.Unmarshal(r.body, &queue) != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, g := range queue.Groups {
		if g.Open != nil && !slices.Contains(b.ids, g.Open.BundleID) {
			b.ids = append(b.ids, g.Open.BundleID)
		}
	}
}

// checkRepeatedly checks and repairs a mailbox several times while faults happen. Every check must get a response.
func (b *corruptedMailbox) checkRepeatedly() {
	for range 8 {
		body := `{"repair":true,"actor":"` + b.name + `"}`
		if b.operator.rng.IntN(3) == 0 {
			body = `{"actor":"` + b.name + `"}`
		}
		b.sendRequest(&b.operator, http.MethodPost, "/v1/admin/check", []byte(body))
	}
}
