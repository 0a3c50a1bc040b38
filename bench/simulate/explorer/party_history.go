package explorer

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A partyHistory is the list of the requests and answers of a party so far. Histories form a tree: a child history
// extends its parent by one answer.
type partyHistory struct {
	id       int
	parent   *partyHistory
	request  string       // key of the last answered request
	answer   *partyAnswer // answer to that request
	children map[historyEdge]*partyHistory

	pending   []*partyRequest // pending requests, in a fixed order
	since     []string        // trace of the history in which the party made each pending request
	facts     []string        // a digest of each answered request with its answer, and with the trace at the time of the request; sorted if the order does not matter
	trace     string          // digest of facts
	done      bool
	sights    []sight
	sightText string // text of the answers to the party's actions

	process *partyProcess // process that waits in this state, or nil
}

type historyEdge struct{ request, answer string }

// addTrace sets the trace of h, a digest of the answers so far. Unless ordered, the order of the answers to concurrent
// requests does not change the trace.
func (h *partyHistory) addTrace(ordered bool) {
	if p := h.parent; p != nil {
		at := slices.IndexFunc(p.pending, func(r *partyRequest) bool { return r.key == h.request })
		h.facts = append(slices.Clone(p.facts), digest(h.request, p.since[at], h.answer.key))
		if !ordered {
			slices.Sort(h.facts)
		}
	}
	h.trace = digest(h.facts...)
	for _, r := range h.pending {
		since := h.trace
		if p := h.parent; p != nil && r.key != h.request {
			if at := slices.IndexFunc(p.pending, func(other *partyRequest) bool { return r.key == other.key }); at >= 0 {
				since = p.since[at]
			}
		}
		h.since = append(h.since, since)
	}
}

// identity returns a text that is equal for two histories if the party cannot distinguish them.
func (h *partyHistory) identity() string {
	parts := []string{h.trace, h.sightText, fmt.Sprint(h.done)}
	for i, r := range h.pending {
		parts = append(parts, r.key, h.since[i])
	}
	return digest(parts...)
}

// digest returns a short hash of texts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(p), p) // writing to a hash never fails
	}
	return string(h.Sum(nil)[:16])
}

// A partyPlayer replays the answers of a party's history, and returns the next requests of the party.
type partyPlayer struct {
	engine   *embedded.Engine // engine that answers requests that are not about documents
	scenario *Scenario
	party    int
	nodes    []*partyHistory
	known    map[string]*partyHistory // by identity
	parked   []*partyHistory          // histories with a waiting process
	replays  int
}

// startParty returns the history of a party before its first answer.
func (p *partyPlayer) startParty() (*partyHistory, error) { return p.playParty(nil, "", nil) }

// playAnswer returns the history that follows h when request r gets answer a.
func (p *partyPlayer) playAnswer(h *partyHistory, r *partyRequest, a *partyAnswer) (*partyHistory, error) {
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

// playParty returns the history that extends parent by an answer. If a process waits at parent, it continues that
// process. Otherwise it replays all answers in a new process.
func (p *partyPlayer) playParty(parent *partyHistory, request string, a *partyAnswer) (*partyHistory, error) {
	h := &partyHistory{id: len(p.nodes), parent: parent, request: request, answer: a, children: make(map[historyEdge]*partyHistory)}
	proc, past, err := p.resumeProcess(h)
	if err != nil {
		return nil, err
	}
	for _, at := range past {
		held := proc.takeRequest(at.request)
		if held == nil {
			defer proc.killProcess()
			return nil, fmt.Errorf("party %s does not repeat its requests: want\n%s\ngot\n%s", p.scenario.Parties[p.party].Name, at.request, proc.describePending())
		}
		held.reply <- at.answer
		proc.awaitHalt()
	}
	h.pending, h.done, h.sights = proc.pendingRequests(), proc.isDone(), slices.Clone(proc.sights)
	for i := range h.sights {
		h.sightText += h.sights[i].String() + "\n"
	}
	h.addTrace(p.scenario.distinguishesOrder)
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
	// parkedFor is the maximum time that a process may wait, by the clock of the bubble that all parties share. It is
	// less than the timeout of a request.
	parkedFor = 4 * time.Second
)

// parkProcess lets a process wait at h for its next answer.
func (p *partyPlayer) parkProcess(h *partyHistory, proc *partyProcess) {
	if h.done || p.scenario.Leases { // the clock of the bubble advances for all parties, and leases depend on it
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

// endProcesses ends all waiting processes.
func (p *partyPlayer) endProcesses() {
	for _, h := range p.parked {
		h.endProcess()
	}
}

// resumeProcess returns a process on the path to h, and the histories whose answers the process must still receive.
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
