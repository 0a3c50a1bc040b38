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

// A ward is a recipient whose mailbox a vandal is at, with all who use it.
type ward struct {
	v       *vandal
	name    string
	origins int  // of its events
	strict  bool // only one thing is damaged, so that every other can be held against it

	actor, domain, operator party

	colleagues atomic.Uint64

	mu      sync.Mutex
	sent    []event
	bundles map[string][]byte // that were handed out, by id
	ids     []string          // of these
}

func newWard(v *vandal, n int) *ward {
	b := &ward{v: v, name: fmt.Sprintf("ward-%d", n), bundles: make(map[string][]byte), origins: 2}
	if v.w.plan.requested != (domain.Origin{}) {
		b.origins = 3
	}
	use := uint64(310 + 10*n) //nolint:gosec // n is small
	b.actor, b.domain, b.operator = v.w.newParty(b.name, use), v.w.newParty("domain of "+b.name, use+1), v.w.newParty("operator of "+b.name, use+2)
	b.colleagues.Store(use + 4)
	b.operator.patience = 30 * time.Minute // a check takes its time
	return b
}

// fill has events come to the mailbox, and some of them be handed out and confirmed.
func (b *ward) fill() error {
	for range 2 + b.v.d.n(5) {
		if err := b.receive(b.events()); err != nil {
			return err
		}
		for range b.v.d.n(3) {
			b.peek("/v1/peek")
			if b.v.d.n(3) == 0 {
				b.dequeue()
			}
		}
		if b.v.d.n(4) == 0 {
			b.order()
		}
	}
	if b.v.d.n(3) > 0 { // what is open and not confirmed has most to lose
		b.peek("/v1/peek")
	}
	return nil
}

// receive has events be accepted. A hub that was told to stop when the weather was bad
// may still be about it.
func (b *ward) receive(events []event) error {
	const patience = 10 * time.Minute
	for began := time.Now(); ; {
		r := b.ask(&b.domain, http.MethodPost, "/v1/data-available", eventsJSON(events))
		switch {
		case r != nil && r.status == http.StatusAccepted:
			return nil
		case r != nil && r.status != http.StatusServiceUnavailable, time.Since(began) > patience:
			return fmt.Errorf("its events were answered %v", r)
		case !b.domain.pause(time.Second):
			return nil
		}
	}
}

func (b *ward) events() []event {
	batch := make([]event, 1+b.domain.d.n(6))
	for i := range batch {
		e := event{
			ID: b.domain.newID().String(), Recipient: b.name, Origin: []domain.Origin{domain.TimeSeries, domain.Charges, b.v.w.plan.requested}[b.domain.d.n(b.origins)].String(),
			ContentType: []string{"type-a", "type-b"}[b.domain.d.n(2)], DocumentType: "RSM012", SupportsBundling: b.domain.d.n(5) > 0, Weight: 1,
		}
		if b.domain.d.n(2) == 0 || e.Origin == b.v.w.plan.inline.String() {
			e.Payload, _ = json.Marshal(map[string]string{"of": e.ID}) // strings can be encoded
		}
		batch[i] = e
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, batch...)
	return batch
}

// ask makes a request, and holds the answer to what may be answered: nil is none.
func (b *ward) ask(p *party, method, path string, body []byte, header ...string) *reply {
	isFine, began := b.v.w.calm, time.Now()
	header = append(header, "X-Actor-Id", b.name)
	if body != nil {
		header = append(header, "Content-Type", "application/json")
	}
	r, err := p.call(b.v.w.ctx, method, path, body, header...)
	switch {
	case err != nil:
		if isFine && b.v.w.ctx.Err() == nil && time.Since(began) >= cmp.Or(p.patience, clientTimeout) {
			b.v.w.fail(fmt.Errorf("%s %s was not answered", method, path))
		}
		return nil
	case r.status == http.StatusInternalServerError:
		b.v.w.reached("an answer was that something is damaged")
	}
	return r
}

// peek fetches a bundle, and holds it to what was handed out before.
func (b *ward) peek(path string) {
	r := b.ask(&b.actor, http.MethodGet, path, nil)
	if r == nil || r.status != http.StatusOK {
		return
	}
	id := r.header["MessageId"][0] //nolint:staticcheck // that is how the original wrote it
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.bundles[id]
	if known && !bytes.Equal(before, r.body) && b.strict {
		b.v.w.fail(fmt.Errorf("H6: bundle %s was %s, and is %s now, which is not what was damaged", id, before, r.body))
		return
	}
	if !known {
		b.ids = append(b.ids, id)
	}
	b.bundles[id] = r.body
}

// known is the id of a bundle, mostly of the last one.
func (b *ward) known(p *party) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.ids); n > 0 {
		if p.d.n(3) > 0 {
			return b.ids[n-1]
		}
		return b.ids[p.d.n(n)]
	}
	return uuid.Nil.String()
}

func (b *ward) dequeue() {
	b.ask(&b.actor, http.MethodDelete, "/v1/dequeue/"+b.known(&b.actor), nil)
}

// fetch is what an actor does.
func (b *ward) fetch() {
	for range 8 {
		if b.v.w.strike.Load() && b.actor.d.n(3) == 0 {
			b.peek("/v1/bundles/" + b.known(&b.actor))
			continue
		}
		switch b.actor.d.n(10) {
		case 9: // the beginning, the middle, and the beginning once more
			b.ask(&b.actor, http.MethodGet, "/v1/peek", nil, "Range", "bytes=0-9,60-,5-30")
		case 0:
			b.ask(&b.actor, http.MethodGet, "/v1/queues", nil)
		case 1:
			b.peek("/v1/bundles/" + b.known(&b.actor))
		case 2, 3:
			b.dequeue()
		case 4:
			b.peek("/v1/peek/" + b.v.w.plan.groups[b.actor.d.n(len(b.v.w.plan.groups))])
		case 5:
			b.peek("/v1/peek" + []string{"?version=beta", "?format=xml", "?bundleId=" + b.actor.newID().String(), "?wait=20"}[b.actor.d.n(4)])
		default:
			b.peek("/v1/peek")
		}
	}
}

// announce is what a domain does.
func (b *ward) announce() {
	for range 4 {
		batch := b.events()
		if b.domain.d.n(2) == 0 {
			b.mu.Lock()
			again := b.sent[b.domain.d.n(len(b.sent))]
			b.mu.Unlock()
			batch = append(batch, again)
		}
		if b.domain.d.n(3) == 0 {
			b.spoil(&batch[0])
		}
		b.ask(&b.domain, http.MethodPost, "/v1/data-available", eventsJSON(batch))
	}
}

// spoil makes an event one that nobody takes.
func (b *ward) spoil(e *event) {
	switch b.domain.d.n(5) {
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

// unusedID is that of no event and no bundle.
const unusedID = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"

// operate is what an operator does.
func (b *ward) operate() {
	b.learns(b.ask(&b.operator, http.MethodGet, "/v1/admin/queues/"+b.name, nil))
	for range 6 {
		switch p := &b.operator; p.d.n(5) {
		case 0:
			b.learns(b.ask(p, http.MethodGet, "/v1/admin/queues/"+b.name, nil))
		case 1:
			b.ask(p, http.MethodGet, "/v1/admin/queues/"+b.name+"/records", nil)
			b.ask(p, http.MethodGet, "/v1/admin/find?id="+unusedID+"&actor="+b.name, nil)
			b.ask(p, http.MethodGet, "/v1/admin/find?id="+unusedID, nil)
		case 2:
			b.ask(p, http.MethodPost, "/v1/admin/check", b.anyCheck())
		default:
			b.order()
		}
	}
}

// order gives one of an operator's orders. A mailbox that is frozen is thawed soon.
func (b *ward) order() {
	p := &b.operator
	order := []string{"release", "skip", "replay", "replay", "freeze", "thaw"}[p.d.n(6)]
	words := map[string]string{"who": "an operator", "why": "something is wrong"}
	if p.d.n(8) == 0 {
		words["who"] = []string{"", " ", "no\x00body", strings.Repeat("x", 300)}[p.d.n(4)]
	}
	switch order {
	case "release", "skip":
		words["bundleId"] = b.known(p)
	case "replay":
		words["group"] = b.v.w.plan.groups[p.d.n(len(b.v.w.plan.groups))]
	}
	text, _ := json.Marshal(words) // strings can be encoded
	b.ask(p, http.MethodPost, "/v1/admin/queues/"+b.name+"/"+order, text)
	if order == "freeze" {
		text, _ := json.Marshal(map[string]string{"who": "an operator", "why": "it was a mistake"})
		b.ask(p, http.MethodPost, "/v1/admin/queues/"+b.name+"/thaw", text)
	}
}

// anyCheck is what an operator may ask for.
func (b *ward) anyCheck() []byte {
	all := []string{`{}`, `{"repair":true}`, `{"repair":true,"actor":"` + b.name + `"}`, `{"actor":"` + b.name + `"}`, `{"resume":"what is this?"}`, `{"resume":"e30="}`, `{"resume":"eyJjb250aW51YXRpb24iOiJ4IiwiaW50ZW50cyI6eyJ8IjoieCJ9fQ"}`, `{"resume":"eyJjb250aW51YXRpb24iOiJ4In0"}`}
	return []byte(all[b.operator.d.n(len(all))])
}

// check has an operator check the mailbox, and repair it.
func (b *ward) check() error {
	for _, body := range []string{`{"actor":"` + b.name + `"}`, `{"repair":true}`} {
		r := b.ask(&b.operator, http.MethodPost, "/v1/admin/check", []byte(body))
		if r == nil || r.status != http.StatusOK {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(r.body)), "\n")
		var last struct{ Report, Problem json.RawMessage }
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || (last.Report == nil) == (last.Problem == nil) {
			return fmt.Errorf("a check has ended with %q", lines[len(lines)-1])
		}
		if bytes.Contains(r.body, []byte(`"finding"`)) || last.Problem != nil {
			b.v.w.reached("a check has named damage")
		}
	}
	return nil
}
