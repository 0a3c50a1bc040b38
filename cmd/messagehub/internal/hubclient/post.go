package hubclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/api/hubclient"
)

// BatchBytes is the recommended size of a request body with events. By default,
// a hub accepts up to 32 MB.
const BatchBytes = 8 << 20

// A Poster sends events to a hub, and repeats requests that fail.
type Poster struct {
	Hub     *Client
	Timeout time.Duration // timeout for one body, including all repetitions

	reached bool // reached means that the hub has answered at least one request
}

// Post sends a body of events, and repeats the request until the hub accepts or
// rejects it, or Timeout passes. It reports each repetition. A repetition is
// safe, because the hub stores each event id only once. If the hub has never
// answered, Post assumes that the address is wrong, and fails immediately.
func (p *Poster) Post(ctx context.Context, body []byte, report func(format string, args ...any)) (*Announced, error) {
	inTime, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	client := p.Hub.As("").With(func(o *hubclient.Options) {
		o.Budget = p.Timeout
		o.OnRetry = func(err error, pause time.Duration) bool {
			if _, isProblem := errors.AsType[*Problem](err); !isProblem && !p.reached {
				return false
			}
			p.reached = true
			report("trying again in %s: %v", pause.Round(time.Millisecond), p.Hub.ExplainError(err))
			return true
		}
	})
	a, err := client.AnnounceJSON(inTime, body)
	refused, isProblem := errors.AsType[*Problem](err)
	explained := p.Hub.ExplainError(err)
	switch {
	case err == nil:
		p.reached = true
		return a, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isProblem && !refused.IsTemporary():
		p.reached = true
		return a, explained
	case !p.reached && !isProblem:
		return nil, explained
	}
	// The error is not wrapped, because the caller treats a *Problem as a final
	// rejection.
	return nil, fmt.Errorf("gave up on a batch after %s: %w", p.Timeout, errors.New(explained.Error()))
}

// SendEvents sends a body of events once. If SendEvents fails, the hub may
// nevertheless have stored the events.
func (c *Client) SendEvents(ctx context.Context, body []byte) (*Announced, error) {
	a, err := c.As("").AnnounceJSON(ctx, body)
	return a, c.ExplainError(err)
}
