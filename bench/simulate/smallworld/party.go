package smallworld

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
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
		if time.Since(proc.born) < parkedFor {
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

// A process is one life of a party.
type process struct {
	engine   *embedded.Engine
	patience time.Duration
	born     time.Time

	mu       sync.Mutex
	held     []*held
	dead     bool
	returned bool
	err      error // of the explorer itself

	activity chan struct{} // something has come up
	finished sync.WaitGroup
	cancel   context.CancelFunc
	db       *cosmos.Database

	saw []sight
}

type held struct {
	*request
	reply chan *answer
}

var lives int // each has a host of its own, for the client keeps what it knows of one

func (p *player) process() (*process, error) {
	lives++
	proc := &process{engine: p.engine, activity: make(chan struct{}, 1), patience: p.scenario.Wait, born: time.Now()}
	db, err := cosmos.Connect(cosmos.Connection{
		Endpoint: fmt.Sprintf("http://life-%d.localhost/", lives), Key: p.engine.Key(), Transport: proc,
	})
	if err != nil {
		return nil, err
	}
	proc.db = db
	ctx, cancel := context.WithCancel(context.Background())
	proc.cancel = cancel
	m := &Member{ctx: ctx, proc: proc, scenario: p.scenario, name: byte(p.party) + 1}    //nolint:gosec // a small number
	m.node = cosmos.New(db, p.scenario.content(), p.scenario.options(uint64(p.party)+1)) //nolint:gosec // a small number
	proc.finished.Add(1)
	go func() {
		defer proc.finished.Done()
		p.scenario.Parties[p.party].Does(m)
		proc.mu.Lock()
		proc.returned = true
		proc.mu.Unlock()
		proc.wake()
	}()
	proc.settle()
	return proc, nil
}

func (p *process) wake() {
	select {
	case p.activity <- struct{}{}:
	default:
	}
}

// settle returns when the party has come to a halt: it has something under way, or
// is done. Its time passes only here.
func (p *process) settle() {
	for {
		synctest.Wait()
		p.mu.Lock()
		halted := len(p.held) > 0 || p.returned
		p.mu.Unlock()
		if halted {
			return
		}
		if p.patience > 0 {
			<-time.After(p.patience)
			continue
		}
		<-p.activity // the clock of the bubble goes on until something happens
	}
}

func (p *process) isDone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.returned
}

// requests returns what is under way, in a fixed order.
func (p *process) requests() []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*request
	for _, h := range p.held {
		all = append(all, h.request)
	}
	slices.SortFunc(all, func(a, b *request) int { return strings.Compare(a.key, b.key) })
	return slices.CompactFunc(all, func(a, b *request) bool { return a.key == b.key })
}

// find takes out the request of a key.
func (p *process) find(key string) *held {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, h := range p.held {
		if h.key == key {
			p.held = slices.Delete(p.held, i, i+1)
			return h
		}
	}
	return nil
}

func (p *process) underWay() string {
	var keys []string
	for _, r := range p.requests() {
		keys = append(keys, r.key)
	}
	return strings.Join(keys, "\n")
}

// kill ends the party: whatever it asks is refused, so that it gives up.
func (p *process) kill() {
	p.mu.Lock()
	p.dead = true
	for _, h := range p.held {
		close(h.reply)
	}
	p.held = nil
	p.mu.Unlock()
	p.cancel()
	p.finished.Wait()
	p.db.Close()
}

var errDead = errors.New("this process is dead")

// Do holds what the party asks for documents, and passes on the rest.
func (p *process) Do(req *http.Request) (*http.Response, error) {
	if !strings.Contains(req.URL.Path, "/docs") {
		return p.engine.Transport().Do(req)
	}
	r, err := requestOf(req)
	p.mu.Lock()
	if err != nil && p.err == nil {
		p.err = err
	}
	if p.dead || err != nil {
		p.mu.Unlock()
		return refusal.response(req), nil
	}
	h := &held{request: r, reply: make(chan *answer, 1)}
	p.held = append(p.held, h)
	p.mu.Unlock()
	p.wake()
	select {
	case a, alive := <-h.reply:
		switch {
		case !alive:
			return refusal.response(req), nil
		case a == lost:
			return nil, faulty.ErrLost
		}
		return a.response(req), nil
	case <-req.Context().Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held = slices.DeleteFunc(p.held, func(other *held) bool { return other == h })
		return nil, errors.Join(errDead, req.Context().Err())
	}
}

// refusal is what no operation tries again.
var refusal = &answer{status: http.StatusBadRequest, header: http.Header{}, body: []byte(`{"code":"BadRequest","message":"dead"}`)}

// seeded returns a source of randomness that repeats itself.
func seeded(seed uint64) func() uint64 {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 7))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}
