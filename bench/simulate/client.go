package simulate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
)

// A baseClient is embedded by every client: domains, actors and operators.
type baseClient struct {
	sim *simulation
	who string
	rng random.Source

	patience time.Duration // time for which the client waits for a response; 0 means clientTimeout
	address  string        // remote address of the client's requests; "" means 127.0.0.1:1
}

func (sim *simulation) newClient(who string, use uint64) baseClient {
	return baseClient{sim: sim, who: who, rng: random.New(sim.options.Seed, use)}
}

// awaitTurn waits until the scheduler chooses the client's turn. The outcome is the name of the injected fault, or "".
// ok is false if the simulation ends.
func (p *baseClient) awaitTurn(what string, faults ...scheduler.Fault) (outcome string, ok bool) {
	granted := make(chan string, 1)
	t := &scheduler.Turn{Who: p.who, What: what, Proceed: func() string { granted <- ""; return "goes" }}
	if len(faults) > 0 {
		t.Faults = func() []scheduler.Fault {
			all := make([]scheduler.Fault, len(faults))
			for i, f := range faults {
				all[i] = scheduler.Fault{Name: f.Name, Inject: func() string { granted <- f.Name; return f.Name }}
			}
			return all
		}
	}
	p.sim.Enqueue(t)
	select {
	case outcome = <-granted:
		return outcome, true
	case <-p.sim.ctx.Done():
		p.sim.Remove(t)
		return "", false
	}
}

// pause waits until d has passed. It returns false if the simulation ends.
func (p *baseClient) pause(d time.Duration) bool { return p.sleepUntil(d, nil) }

// sleepUntil waits until d has passed or woken is closed. It returns false if the simulation ends.
func (p *baseClient) sleepUntil(d time.Duration, woken <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-woken:
		return true
	case <-p.sim.ctx.Done():
		return false
	}
}

// A hubReply is the response of a hub.
type hubReply struct {
	by     string // name of the hub that sent the response
	status int
	header http.Header
	body   []byte
}

// clientTimeout is the time that a client waits for a response.
const clientTimeout = 45 * time.Second

// call sends a request to a random hub. After an error the outcome of the request is unknown.
func (p *baseClient) call(ctx context.Context, method, path string, body []byte, header ...string) (*hubReply, error) {
	i := p.rng.IntN(hubCount)
	if _, ok := p.awaitTurn(fmt.Sprintf("asks hub %d: %s %s", i, method, path)); !ok {
		return nil, p.sim.ctx.Err()
	}
	h := p.sim.hubAt(i)
	if h == nil {
		return nil, errRefused
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.patience, clientTimeout))
	defer cancel()
	ctx, unhurried := p.withGivingUp(ctx)
	defer unhurried()
	req, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:8080"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.RemoteAddr = cmp.Or(p.address, "127.0.0.1:1")
	if strings.HasPrefix(path, "/v1/admin/") {
		req.Header.Set("Authorization", "Bearer "+operatorToken)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	check := func(*hubReply) {}
	if p.sim.env.issuer != nil {
		check = p.sim.env.issuer.addToken(req, h)
	}
	answer := make(chan *hubReply, 1)
	p.sim.background.Go(func() {
		rec := httptest.NewRecorder()
		defer func() {
			if r := recover(); r != nil { // a handler panics to break its connection
				answer <- nil
			}
		}()
		h.handler.ServeHTTP(rec, req)
		answer <- &hubReply{h.who, rec.Code, rec.Header(), rec.Body.Bytes()}
	})
	var r *hubReply
	select {
	case r = <-answer:
	case <-h.died:
	case <-ctx.Done():
	}
	if r == nil {
		return nil, errCut
	}
	check(r)
	lost, ok := p.awaitTurn(fmt.Sprintf("is answered %d%s", r.status, problemName(r.body)), scheduler.Fault{Name: "answer lost"})
	if !ok || lost != "" {
		return nil, errCut
	}
	if r.status == http.StatusInternalServerError && !p.sim.faults.storeCorrupted.Load() {
		err := fmt.Errorf("%s %s returned %d %s", method, path, r.status, r.body)
		p.sim.Fail(err)
	}
	return r, nil
}

// withGivingUp returns a context that the scheduler may cancel, as if the client stopped waiting. end takes this
// possibility away from the scheduler.
func (p *baseClient) withGivingUp(ctx context.Context) (hurried context.Context, end func()) {
	if !p.sim.plan.clientsGiveUp || p.sim.FaultFree || p.rng.IntN(8) > 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	t := &scheduler.Turn{Who: p.who, What: "is in a hurry", Proceed: func() string {
		cancel()
		p.sim.MarkReached("a client gave up a request")
		return "gives up"
	}}
	p.sim.Enqueue(t)
	return ctx, func() {
		p.sim.Remove(t)
		cancel()
	}
}

func (p *baseClient) newID() uuid.UUID {
	id, _ := uuid.NewRandomFromReader(p.rng) // a random source does not fail
	return id
}

// problemName returns a blank and the name of the problem in a response body, or "" if the body contains no problem.
func problemName(body []byte) string {
	_, after, ok := bytes.Cut(body, []byte(`"urn:messagehub:problem:`))
	if !ok {
		return ""
	}
	name, _, _ := bytes.Cut(after, []byte(`"`))
	return " " + string(name)
}
