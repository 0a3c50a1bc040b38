package simulate

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// What others do to a mailbox at the same time.

// announceToo is what another domain does at the same time, with the same recipient.
func (b *ward) announceToo() {
	colleague := b.v.w.newParty("another domain of "+b.name, b.colleagues.Add(1))
	for range 3 {
		b.ask(&colleague, http.MethodPost, "/v1/data-available", eventsJSON(b.events()))
	}
}

// announceByBus is what another domain does at the same time, over the bus.
func (b *ward) announceByBus() {
	colleague := b.v.w.newParty("a domain of "+b.name+" on the bus", b.colleagues.Add(1))
	queue := []string{"", contract.DataAvailableQueue}[colleague.d.n(2)]
	a, err := colleague.newAnnouncer(domainclient.JSON, queue)
	if err != nil {
		b.v.w.fail(err)
		return
	}
	defer func() { a.end(false) }()
	for range 3 {
		if !a.persist(b.events()) {
			return
		}
	}
}

// learns notes the bundles that are open, those too whose content nobody has made.
func (b *ward) learns(r *reply) {
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

// inspects has an operator check a mailbox again and again in bad weather, and repair
// it: whatever a check comes to, it is an answer.
func (b *ward) inspects() {
	for range 8 {
		body := `{"repair":true,"actor":"` + b.name + `"}`
		if b.operator.d.n(3) == 0 {
			body = `{"actor":"` + b.name + `"}`
		}
		b.ask(&b.operator, http.MethodPost, "/v1/admin/check", []byte(body))
	}
}
