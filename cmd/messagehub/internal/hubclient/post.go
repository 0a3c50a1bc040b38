package hubclient

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/api/hubclient"
)

// BatchBytes is the recommended length of a body of events; a hub accepts 32 MB
// by default.
const BatchBytes = 8 << 20

// A Poster sends events to a hub, one request after another.
type Poster struct {
	Hub     *Client
	Timeout time.Duration // timeout for one body, including repetitions

	reached bool // a response of the hub was received
}

// Post sends a body, and repeats the request until the hub accepts or rejects it
// or Timeout passes. It reports each repetition. A repetition is safe, because the
// hub stores each id once. If no response was ever received, Post assumes a wrong
// address and fails immediately.
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
	// Not wrapped, because the caller treats a *Problem as a final rejection.
	return nil, fmt.Errorf("gave up on a batch after %s: %w", p.Timeout, errors.New(explained.Error()))
}

// SendEvents sends a body once. If it fails, the hub may have stored the
// events.
func (c *Client) SendEvents(ctx context.Context, body []byte) (*Announced, error) {
	a, err := c.As("").AnnounceJSON(ctx, body)
	return a, c.ExplainError(err)
}
