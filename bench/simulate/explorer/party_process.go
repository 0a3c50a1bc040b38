package explorer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

// A partyProcess runs a party once.
type partyProcess struct {
	engine   *embedded.Engine
	patience time.Duration
	born     time.Time

	mu       sync.Mutex
	held     []*heldRequest
	dead     bool
	returned bool
	err      error // error of the explorer, not of the party

	activity chan struct{} // receives a value when a request was made or the party is done
	finished sync.WaitGroup
	cancel   context.CancelFunc
	db       *client.Database

	sights []sight
}

type heldRequest struct {
	*partyRequest
	reply chan *partyAnswer
}

var processCount int // each process has its own host name, because the client caches by host

func (p *partyPlayer) newProcess() (*partyProcess, error) {
	processCount++
	proc := &partyProcess{engine: p.engine, activity: make(chan struct{}, 1), patience: p.scenario.Wait, born: time.Now()}
	db, err := client.Connect(client.Connection{
		Endpoint: fmt.Sprintf("http://life-%d.localhost/", processCount), Key: p.engine.Key(), Transport: proc,
	})
	if err != nil {
		return nil, err
	}
	proc.db = db
	ctx, cancel := context.WithCancel(context.Background())
	proc.cancel = cancel
	m := p.scenario.newMember(ctx, db, proc, p.scenario.optionsOf(p.party), byte(p.party)+1) //nolint:gosec // a small number
	proc.finished.Add(1)
	go func() {
		defer proc.finished.Done()
		p.scenario.Parties[p.party].Run(m)
		proc.mu.Lock()
		proc.returned = true
		proc.mu.Unlock()
		proc.wakeUp()
	}()
	proc.awaitHalt()
	return proc, nil
}

func (p *partyProcess) wakeUp() {
	select {
	case p.activity <- struct{}{}:
	default:
	}
}

// awaitHalt waits until the party has a pending request or is done. The party's time passes only here.
func (p *partyProcess) awaitHalt() {
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
		<-p.activity // the bubble's clock advances until something happens
	}
}

func (p *partyProcess) isDone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.returned
}

// pendingRequests returns the pending requests, in a fixed order.
func (p *partyProcess) pendingRequests() []*partyRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*partyRequest
	for _, h := range p.held {
		all = append(all, h.partyRequest)
	}
	slices.SortFunc(all, func(a, b *partyRequest) int { return strings.Compare(a.key, b.key) })
	return slices.CompactFunc(all, func(a, b *partyRequest) bool { return a.key == b.key })
}

// isAt reports whether the party is still at h. While a process waits, the shared clock advances for other parties. So
// a backoff of the process may have ended early.
func (p *partyProcess) isAt(h *partyHistory) bool {
	return slices.EqualFunc(p.pendingRequests(), h.pending, func(a, b *partyRequest) bool { return a.key == b.key })
}

// takeRequest removes the pending request with a key, and returns it.
func (p *partyProcess) takeRequest(key string) *heldRequest {
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

func (p *partyProcess) describePending() string {
	var keys []string
	for _, r := range p.pendingRequests() {
		keys = append(keys, r.key)
	}
	return strings.Join(keys, "\n")
}

// killProcess ends the party: all its requests fail without a retry.
func (p *partyProcess) killProcess() {
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

// Do holds requests about documents, and forwards all other requests.
func (p *partyProcess) Do(req *http.Request) (*http.Response, error) {
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
		return deadAnswer.newResponse(req), nil
	}
	h := &heldRequest{partyRequest: r, reply: make(chan *partyAnswer, 1)}
	p.held = append(p.held, h)
	p.mu.Unlock()
	p.wakeUp()
	select {
	case a, alive := <-h.reply:
		switch {
		case !alive:
			return deadAnswer.newResponse(req), nil
		case a == lost:
			return nil, faulty.ErrLost
		}
		return a.newResponse(req), nil
	case <-req.Context().Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held = slices.DeleteFunc(p.held, func(other *heldRequest) bool { return other == h })
		return nil, errors.Join(errDead, req.Context().Err())
	}
}

// deadAnswer is the answer to requests of a killed process. No operation retries after it.
var deadAnswer = &partyAnswer{status: http.StatusBadRequest, header: http.Header{}, body: []byte(`{"code":"BadRequest","message":"dead"}`)}

// newSeeded returns a repeatable source of randomness.
func newSeeded(seed uint64) func() uint64 {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 7))
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return source.Uint64()
	}
}
