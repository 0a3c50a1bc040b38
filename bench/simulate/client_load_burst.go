package simulate

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A loadBurst sends many concurrent requests, or one request that exceeds a limit. Its mailboxes are always empty, so
// every response says that the mailbox is empty or that a limit is exceeded.
type loadBurst struct{ baseClient }

// runUntil sends a few bursts. It returns early if finish is closed.
func (c *loadBurst) runUntil(finish <-chan struct{}) {
	const visits = 3
	for range visits {
		if !c.pause(time.Duration(1+c.rng.IntN(8000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		if c.rng.IntN(2) == 0 {
			c.overloadPeeks()
		} else {
			c.overloadSaves()
		}
	}
}

// overloadPeeks sends more long polls of one actor than a hub admits.
func (c *loadBurst) overloadPeeks() {
	const callers = 24
	var all sync.WaitGroup
	for i := range callers {
		p := c.sim.newClient(fmt.Sprintf("%s.%d", c.who, i), uint64(400+i))
		all.Go(func() {
			r, err := p.call(c.sim.ctx, http.MethodGet, "/v1/peek?wait=5s", nil, "X-Actor-Id", c.who)
			switch {
			case err != nil || r.status == http.StatusNoContent || r.status == http.StatusServiceUnavailable:
			case r.status == http.StatusTooManyRequests:
				c.sim.MarkReached("a request was refused because there were too many")
			default:
				c.sim.Fail(fmt.Errorf("a Peek of an empty queue returned %d %s", r.status, r.body))
			}
		})
	}
	all.Wait()
}

// tooManyKinds returns events of more kinds than a recipient may have.
func (p *baseClient) tooManyKinds(recipient string) []sentData {
	const limit = 1000
	all := make([]sentData, limit+1)
	for i := range all {
		all[i] = sentData{
			ID: p.newID().String(), Recipient: recipient, Origin: domain.TimeSeries.String(),
			ContentType: fmt.Sprintf("kind-%d", i), DocumentType: "RSM012", Weight: 1,
		}
	}
	return all
}

// overloadSaves sends events of too many kinds, for two recipients.
func (c *loadBurst) overloadSaves() {
	events := append(c.tooManyKinds(c.who+"-a"), c.tooManyKinds(c.who+"-b")...)
	r, err := c.call(c.sim.ctx, http.MethodPost, "/v1/data-available", encodeEvents(events), "Content-Type", "application/json")
	switch {
	case err != nil || r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable:
	case r.status == http.StatusBadRequest || r.status == http.StatusUnprocessableEntity:
		c.sim.MarkReached("a request was refused because it was too large")
	default:
		c.sim.Fail(fmt.Errorf("a request with events of too many kinds returned %d %s", r.status, r.body))
	}
}
