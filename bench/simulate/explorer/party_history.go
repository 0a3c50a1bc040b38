package explorer

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A partyHistory is what a party has asked and been answered, as a tree: a node is the
// party at one point of its life.
type partyHistory struct {
	id       int
	parent   *partyHistory
	request  string  // key of the request that was answered last
	answer   *answer // and the answer
	children map[historyEdge]*partyHistory

	pending   []*request // under way, in a fixed order
	since     []string   // the trace of the point at which each of them came up
	facts     []string   // what was answered: the request, since when it was under way, and the answer; sorted
	trace     string     // facts, in short
	done      bool
	sights    []sight
	sightText string // saw, as text

	process *partyProcess // that waits here; nil: there is none
}

type historyEdge struct{ request, answer string }

// addTrace gives h its trace: what was answered, whatever the order of answers to
// requests that were under way at the same time.
func (h *partyHistory) addTrace(ordered bool) {
	if p := h.parent; p != nil {
		at := slices.IndexFunc(p.pending, func(r *request) bool { return r.key == h.request })
		h.facts = append(slices.Clone(p.facts), digest(h.request, p.since[at], h.answer.key))
		if !ordered {
			slices.Sort(h.facts)
		}
	}
	h.trace = digest(h.facts...)
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
func (h *partyHistory) identity() string {
	parts := []string{h.trace, h.sightText, fmt.Sprint(h.done)}
	for i, r := range h.pending {
		parts = append(parts, r.key, h.since[i])
	}
	return digest(parts...)
}

// digest is a short text for a long one.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(p), p) // never fails
	}
	return string(h.Sum(nil)[:16])
}

// A partyPlayer has a party do again what it has done, and looks what it does next.
type partyPlayer struct {
	engine   *embedded.Engine // for what is no document
	scenario *Scenario
	party    int
	nodes    []*partyHistory
	known    map[string]*partyHistory // by identity
	parked   []*partyHistory          // where a process waits, or did
	replays  int
}

// startParty returns the party before its first answer.
func (p *partyPlayer) startParty() (*partyHistory, error) { return p.playParty(nil, "", nil) }

// playAnswer returns the party at h after one more answer.
func (p *partyPlayer) playAnswer(h *partyHistory, r *request, a *answer) (*partyHistory, error) {
	l := historyEdge{r.key, a.key}
	if next := h.children[l]; next != nil {
		return next, nil
	}
	next, err := p.playParty(h, r.key, a)
	if err == nil {
		h.children[l] = next
	}
	return next, err
}

// playParty returns the party at parent after one more answer: the process that waits
// there goes on or, if there is none, a new one lives through all of it.
func (p *partyPlayer) playParty(parent *partyHistory, request string, a *answer) (*partyHistory, error) {
	h := &partyHistory{id: len(p.nodes), parent: parent, request: request, answer: a, children: make(map[historyEdge]*partyHistory)}
	proc, past, err := p.resumeProcess(h)
	if err != nil {
		return nil, err
	}
	for _, at := range past {
		held := proc.takeRequest(at.request)
		if held == nil {
			defer proc.killProcess()
			return nil, fmt.Errorf("party %s does not do again what it did: no request\n%s\nbut\n%s", p.scenario.Parties[p.party].Name, at.request, proc.describePending())
		}
		held.reply <- at.answer
		proc.awaitHalt()
	}
	h.pending, h.done, h.sights = proc.pendingRequests(), proc.isDone(), slices.Clone(proc.sights)
	for i := range h.sights {
		h.sightText += h.sights[i].String() + "\n"
	}
	h.addTrace(p.scenario.tellsOrder)
	if same := p.known[h.identity()]; same != nil {
		proc.killProcess()
		return same, proc.err
	}
	p.known[h.identity()] = h
	p.nodes = append(p.nodes, h)
	p.parkProcess(h, proc)
	return h, proc.err
}

const (
	maxParked = 500
	// parkedFor is for how long a process may wait, by the clock of the bubble, on
	// which the others live, too: less than any request of it takes to time out.
	parkedFor = 4 * time.Second
)

// parkProcess lets a process wait at h for being asked on.
func (p *partyPlayer) parkProcess(h *partyHistory, proc *partyProcess) {
	if h.done || p.scenario.Leases { // a lease is a matter of that clock
		proc.killProcess()
		return
	}
	h.process = proc
	p.parked = append(p.parked, h)
	if len(p.parked) > maxParked {
		p.parked[0].endProcess()
		p.parked = p.parked[1:]
	}
}

// endProcess ends the process that waits at h, if there is one.
func (h *partyHistory) endProcess() {
	if h.process != nil {
		h.process.killProcess()
		h.process = nil
	}
}

// endProcesses ends all that wait.
func (p *partyPlayer) endProcesses() {
	for _, h := range p.parked {
		h.endProcess()
	}
}

// resumeProcess returns a process on the way to h, and what is still to be answered.
func (p *partyPlayer) resumeProcess(h *partyHistory) (*partyProcess, []*partyHistory, error) {
	if from := h.parent; from != nil && from.process != nil {
		proc := from.process
		if time.Since(proc.born) < parkedFor && proc.isAt(from) {
			from.process = nil
			return proc, []*partyHistory{h}, nil
		}
		from.endProcess()
	}
	var past []*partyHistory
	for at := h; at.parent != nil; at = at.parent {
		past = append(past, at)
	}
	slices.Reverse(past)
	p.replays++
	proc, err := p.newProcess()
	return proc, past, err
}
