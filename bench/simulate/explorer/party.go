package explorer

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A history is what a party has asked and been answered, as a tree: a node is the
// party at one point of its life.
type history struct {
	id       int
	parent   *history
	request  string  // key of the request that was answered last
	answer   *answer // and the answer
	children map[link]*history

	pending []*request // under way, in a fixed order
	since   []string   // the trace of the point at which each of them came up
	facts   []string   // what was answered: the request, since when it was under way, and the answer; sorted
	trace   string     // facts, in short
	done    bool
	saw     []sight
	seen    string // saw, as text

	live *process // that waits here; nil: there is none
}

type link struct{ request, answer string }

// identify gives h its trace: what was answered, whatever the order of answers to
// requests that were under way at the same time.
func (h *history) identify(ordered bool) {
	if p := h.parent; p != nil {
		at := slices.IndexFunc(p.pending, func(r *request) bool { return r.key == h.request })
		h.facts = append(slices.Clone(p.facts), sum(h.request, p.since[at], h.answer.key))
		if !ordered {
			slices.Sort(h.facts)
		}
	}
	h.trace = sum(h.facts...)
	for _, r := range h.pending {
		since := h.trace
		if p := h.parent; p != nil && r.key != h.request {
			if at := slices.IndexFunc(p.pending, func(other *request) bool { return r.key == other.key }); at >= 0 {
				since = p.since[at]
			}
		}
		h.since = append(h.since, since)
	}
}

// identity tells histories apart that are not the same to the party.
func (h *history) identity() string {
	parts := []string{h.trace, h.seen, fmt.Sprint(h.done)}
	for i, r := range h.pending {
		parts = append(parts, r.key, h.since[i])
	}
	return sum(parts...)
}

// sum is a short text for a long one.
func sum(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(p), p) // never fails
	}
	return string(h.Sum(nil)[:16])
}

// A player has a party do again what it has done, and looks what it does next.
type player struct {
	engine   *embedded.Engine // for what is no document
	scenario *Scenario
	party    int
	nodes    []*history
	known    map[string]*history // by identity
	parked   []*history          // where a process waits, or did
	replays  int
}

// start returns the party before its first answer.
func (p *player) start() (*history, error) { return p.play(nil, "", nil) }

// answered returns the party at h after one more answer.
func (p *player) answered(h *history, r *request, a *answer) (*history, error) {
	l := link{r.key, a.key}
	if next := h.children[l]; next != nil {
		return next, nil
	}
	next, err := p.play(h, r.key, a)
	if err == nil {
		h.children[l] = next
	}
	return next, err
}

// play returns the party at parent after one more answer: the process that waits
// there goes on or, if there is none, a new one lives through all of it.
func (p *player) play(parent *history, request string, a *answer) (*history, error) {
	h := &history{id: len(p.nodes), parent: parent, request: request, answer: a, children: make(map[link]*history)}
	proc, past, err := p.resume(h)
	if err != nil {
		return nil, err
	}
	for _, at := range past {
		held := proc.find(at.request)
		if held == nil {
			defer proc.kill()
			return nil, fmt.Errorf("party %s does not do again what it did: no request\n%s\nbut\n%s", p.scenario.Parties[p.party].Name, at.request, proc.underWay())
		}
		held.reply <- at.answer
		proc.settle()
	}
	h.pending, h.done, h.saw = proc.requests(), proc.isDone(), slices.Clone(proc.saw)
	for i := range h.saw {
		h.seen += h.saw[i].String() + "\n"
	}
	h.identify(p.scenario.ordered)
	if same := p.known[h.identity()]; same != nil {
		proc.kill()
		return same, proc.err
	}
	p.known[h.identity()] = h
	p.nodes = append(p.nodes, h)
	p.park(h, proc)
	return h, proc.err
}

const (
	mostParked = 500
	// parkedFor is for how long a process may wait, by the clock of the bubble, on
	// which the others live, too: less than any request of it takes to time out.
	parkedFor = 4 * time.Second
)

// park lets a process wait at h for being asked on.
func (p *player) park(h *history, proc *process) {
	if h.done || p.scenario.Leases { // a lease is a matter of that clock
		proc.kill()
		return
	}
	h.live = proc
	p.parked = append(p.parked, h)
	if len(p.parked) > mostParked {
		p.parked[0].end()
		p.parked = p.parked[1:]
	}
}

// end ends the process that waits at h, if there is one.
func (h *history) end() {
	if h.live != nil {
		h.live.kill()
		h.live = nil
	}
}

// stop ends all that wait.
func (p *player) stop() {
	for _, h := range p.parked {
		h.end()
	}
}

// resume returns a process on the way to h, and what is still to be answered.
func (p *player) resume(h *history) (*process, []*history, error) {
	if from := h.parent; from != nil && from.live != nil {
		proc := from.live
		if time.Since(proc.born) < parkedFor && proc.isAt(from) {
			from.live = nil
			return proc, []*history{h}, nil
		}
		from.end()
	}
	var past []*history
	for at := h; at.parent != nil; at = at.parent {
		past = append(past, at)
	}
	slices.Reverse(past)
	p.replays++
	proc, err := p.process()
	return proc, past, err
}
