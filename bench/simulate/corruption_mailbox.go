package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/domain"
)

// A corruptedMailbox is the mailbox of a recipient that the corruptor damages, with all its clients.
type corruptedMailbox struct {
	corruptor *corruptor
	name      string
	origins   int  // number of different origins of the events
	isStrict  bool // true if a single document or blob is damaged, so that all other contents must stay the same

	actor, domain, operator baseClient

	colleagues atomic.Uint64

	mu      sync.Mutex
	sent    []sentData
	bundles map[string][]byte // bodies of the bundles that were returned, by id
	ids     []string          // ids of the returned bundles, in order
}

func newCorruptedMailbox(v *corruptor, n int) *corruptedMailbox {
	b := &corruptedMailbox{corruptor: v, name: fmt.Sprintf("ward-%d", n), bundles: make(map[string][]byte), origins: 2}
	if v.sim.plan.requestedOrigin != (domain.Origin{}) {
		b.origins = 3
	}
	use := uint64(310 + 10*n) //nolint:gosec // n is small
	b.actor, b.domain, b.operator = v.sim.newClient(b.name, use), v.sim.newClient("domain of "+b.name, use+1), v.sim.newClient("operator of "+b.name, use+2)
	b.colleagues.Store(use + 4)
	b.operator.patience = 30 * time.Minute // a check of the store may take many minutes
	return b
}

// fillMailbox sends events, and fetches and dequeues some of them.
func (b *corruptedMailbox) fillMailbox() error {
	for range 2 + b.corruptor.rng.IntN(5) {
		if err := b.sendUntilAccepted(b.newEvents()); err != nil {
			return err
		}
		for range b.corruptor.rng.IntN(3) {
			b.peekBundle("/v1/peek")
			if b.corruptor.rng.IntN(3) == 0 {
				b.dequeueBundle()
			}
		}
		if b.corruptor.rng.IntN(4) == 0 {
			b.sendOrder()
		}
	}
	if b.corruptor.rng.IntN(3) > 0 { // often a bundle stays open, because damage to an open bundle affects most requests
		b.peekBundle("/v1/peek")
	}
	return nil
}

// sendUntilAccepted sends events until they are accepted. It repeats refused requests, because a hub may be stopping.
func (b *corruptedMailbox) sendUntilAccepted(events []sentData) error {
	const patience = 10 * time.Minute
	for began := time.Now(); ; {
		r := b.sendRequest(&b.domain, http.MethodPost, "/v1/data-available", encodeEvents(events))
		switch {
		case r != nil && r.status == http.StatusAccepted:
			return nil
		case r != nil && r.status != http.StatusServiceUnavailable, time.Since(began) > patience:
			return fmt.Errorf("its events were not accepted: %v", r)
		case !b.domain.pause(time.Second):
			return nil
		}
	}
}

func (b *corruptedMailbox) newEvents() []sentData {
	batch := make([]sentData, 1+b.domain.rng.IntN(6))
	for i := range batch {
		e := sentData{
			ID: b.domain.newID().String(), Recipient: b.name, Origin: []domain.Origin{domain.TimeSeries, domain.Charges, b.corruptor.sim.plan.requestedOrigin}[b.domain.rng.IntN(b.origins)].String(),
			ContentType: []string{"type-a", "type-b"}[b.domain.rng.IntN(2)], DocumentType: "RSM012", SupportsBundling: b.domain.rng.IntN(5) > 0, Weight: 1,
		}
		if b.domain.rng.IntN(2) == 0 || e.Origin == b.corruptor.sim.plan.inline.String() {
			e.Payload, _ = json.Marshal(map[string]string{"of": e.ID}) // strings can be encoded
		}
		batch[i] = e
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, batch...)
	return batch
}

// sendRequest sends a request and checks that the response is allowed. It returns nil if no response arrived.
func (b *corruptedMailbox) sendRequest(p *baseClient, method, path string, body []byte, header ...string) *hubReply {
	isFine, began := b.corruptor.sim.FaultFree, time.Now()
	header = append(header, "X-Actor-Id", b.name)
	if body != nil {
		header = append(header, "Content-Type", "application/json")
	}
	r, err := p.call(b.corruptor.sim.ctx, method, path, body, header...)
	switch {
	case err != nil:
		if isFine && b.corruptor.sim.ctx.Err() == nil && time.Since(began) >= cmp.Or(p.patience, clientTimeout) {
			b.corruptor.sim.Fail(fmt.Errorf("%s %s got no response", method, path))
		}
		return nil
	case r.status == http.StatusInternalServerError:
		b.corruptor.sim.MarkReached("an answer reported damage")
	}
	return r
}

// peekBundle fetches a bundle. If the bundle was returned before, peekBundle compares the two bodies.
func (b *corruptedMailbox) peekBundle(path string) {
	r := b.sendRequest(&b.actor, http.MethodGet, path, nil)
	if r == nil || r.status != http.StatusOK {
		return
	}
	id := r.header["MessageId"][0] //nolint:staticcheck // the spelling of the original hub
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.bundles[id]
	if known && !bytes.Equal(before, r.body) && b.isStrict {
		b.corruptor.sim.Fail(fmt.Errorf("H6: bundle %s changed from %s to %s, although something else was damaged", id, before, r.body))
		return
	}
	if !known {
		b.ids = append(b.ids, id)
	}
	b.bundles[id] = r.body
}

// pickBundle returns the id of a known bundle, mostly the last one.
func (b *corruptedMailbox) pickBundle(p *baseClient) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.ids); n > 0 {
		if p.rng.IntN(3) > 0 {
			return b.ids[n-1]
		}
		return b.ids[p.rng.IntN(n)]
	}
	return uuid.Nil.String()
}

func (b *corruptedMailbox) dequeueBundle() {
	b.sendRequest(&b.actor, http.MethodDelete, "/v1/dequeue/"+b.pickBundle(&b.actor), nil)
}

// useAsActor sends the requests of an actor.
func (b *corruptedMailbox) useAsActor() {
	for range 8 {
		if b.corruptor.sim.faults.domainsFail.Load() && b.actor.rng.IntN(3) == 0 {
			b.peekBundle("/v1/bundles/" + b.pickBundle(&b.actor))
			continue
		}
		switch b.actor.rng.IntN(10) {
		case 9: // overlapping ranges
			b.sendRequest(&b.actor, http.MethodGet, "/v1/peek", nil, "Range", "bytes=0-9,60-,5-30")
		case 0:
			b.sendRequest(&b.actor, http.MethodGet, "/v1/queues", nil)
		case 1:
			b.peekBundle("/v1/bundles/" + b.pickBundle(&b.actor))
		case 2, 3:
			b.dequeueBundle()
		case 4:
			b.peekBundle("/v1/peek/" + b.corruptor.sim.plan.groups[b.actor.rng.IntN(len(b.corruptor.sim.plan.groups))])
		case 5:
			b.peekBundle("/v1/peek" + []string{"?version=beta", "?format=xml", "?bundleId=" + b.actor.newID().String(), "?wait=20"}[b.actor.rng.IntN(4)])
		default:
			b.peekBundle("/v1/peek")
		}
	}
}

// useAsDomain sends the requests of a domain.
func (b *corruptedMailbox) useAsDomain() {
	for range 4 {
		batch := b.newEvents()
		if b.domain.rng.IntN(2) == 0 {
			b.mu.Lock()
			again := b.sent[b.domain.rng.IntN(len(b.sent))]
			b.mu.Unlock()
			batch = append(batch, again)
		}
		if b.domain.rng.IntN(3) == 0 {
			b.spoilEvent(&batch[0])
		}
		b.sendRequest(&b.domain, http.MethodPost, "/v1/data-available", encodeEvents(batch))
	}
}

// spoilEvent makes an event invalid.
func (b *corruptedMailbox) spoilEvent(e *sentData) {
	switch b.domain.rng.IntN(5) {
	case 0:
		e.Origin = unknownOrigin
	case 1:
		e.Weight = -1
	case 2:
		e.ContentType = ""
	case 3:
		e.Recipient = "|"
	default:
		e.DocumentType = strings.Repeat("x", 300)
	}
}

// unusedID is an id that belongs to no event and no bundle.
const unusedID = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"

// useAsOperator sends the requests of an operator.
func (b *corruptedMailbox) useAsOperator() {
	b.noteOpenBundles(b.sendRequest(&b.operator, http.MethodGet, "/v1/admin/queues/"+b.name, nil))
	for range 6 {
		switch p := &b.operator; p.rng.IntN(5) {
		case 0:
			b.noteOpenBundles(b.sendRequest(p, http.MethodGet, "/v1/admin/queues/"+b.name, nil))
		case 1:
			b.sendRequest(p, http.MethodGet, "/v1/admin/queues/"+b.name+"/records", nil)
			b.sendRequest(p, http.MethodGet, "/v1/admin/find?id="+unusedID+"&actor="+b.name, nil)
			b.sendRequest(p, http.MethodGet, "/v1/admin/find?id="+unusedID, nil)
		case 2:
			b.sendRequest(p, http.MethodPost, "/v1/admin/check", b.checkBody())
		default:
			b.sendOrder()
		}
	}
}

// sendOrder sends a random order of an operator. It thaws a frozen mailbox immediately.
func (b *corruptedMailbox) sendOrder() {
	p := &b.operator
	order := []string{"release", "skip", "replay", "replay", "freeze", "thaw"}[p.rng.IntN(6)]
	words := map[string]string{"who": "an operator", "why": "something is wrong"}
	if p.rng.IntN(8) == 0 {
		words["who"] = []string{"", " ", "no\x00body", strings.Repeat("x", 300)}[p.rng.IntN(4)]
	}
	switch order {
	case "release", "skip":
		words["bundleId"] = b.pickBundle(p)
	case "replay":
		words["group"] = b.corruptor.sim.plan.groups[p.rng.IntN(len(b.corruptor.sim.plan.groups))]
	}
	text, _ := json.Marshal(words) // strings can be encoded
	b.sendRequest(p, http.MethodPost, "/v1/admin/queues/"+b.name+"/"+order, text)
	if order == "freeze" {
		text, _ := json.Marshal(map[string]string{"who": "an operator", "why": "it was a mistake"})
		b.sendRequest(p, http.MethodPost, "/v1/admin/queues/"+b.name+"/thaw", text)
	}
}

// checkBody returns the body of a random check request.
func (b *corruptedMailbox) checkBody() []byte {
	all := []string{`{}`, `{"repair":true}`, `{"repair":true,"actor":"` + b.name + `"}`, `{"actor":"` + b.name + `"}`, `{"resume":"what is this?"}`, `{"resume":"e30="}`, `{"resume":"eyJjb250aW51YXRpb24iOiJ4IiwiaW50ZW50cyI6eyJ8IjoieCJ9fQ"}`, `{"resume":"eyJjb250aW51YXRpb24iOiJ4In0"}`}
	return []byte(all[b.operator.rng.IntN(len(all))])
}

// checkMailbox requests a check of the mailbox as an operator, and then a check with repair of the whole store.
func (b *corruptedMailbox) checkMailbox() error {
	for _, body := range []string{`{"actor":"` + b.name + `"}`, `{"repair":true}`} {
		r := b.sendRequest(&b.operator, http.MethodPost, "/v1/admin/check", []byte(body))
		if r == nil || r.status != http.StatusOK {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(r.body)), "\n")
		var last struct{ Report, Problem json.RawMessage }
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || (last.Report == nil) == (last.Problem == nil) {
			return fmt.Errorf("the last line of a check is %q", lines[len(lines)-1])
		}
		if bytes.Contains(r.body, []byte(`"finding"`)) || last.Problem != nil {
			b.corruptor.sim.MarkReached("a check reported damage")
		}
	}
	return nil
}
