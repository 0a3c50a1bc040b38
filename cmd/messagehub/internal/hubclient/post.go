package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// BatchBytes is how long the bodies of events should be; a hub takes 32 MB by default.
const BatchBytes = 8 << 20

// Repetitions are MinPause apart at first, and never more than MaxPause.
const (
	MinPause = 100 * time.Millisecond
	MaxPause = 5 * time.Second
)

// An Answer is the answer of a hub to events that it accepts.
type Answer struct {
	Accepted   int `json:"accepted"`
	Duplicates int `json:"duplicates"`
}

// A Poster sends events to a hub, one request after the other.
type Poster struct {
	Hub     *Client
	Timeout time.Duration // of one body, with its repetitions

	reached bool // the hub has answered before
}

// Post sends a body until the hub takes or refuses it, or the time is over. It reports each
// repetition. Sending again what may have arrived is safe, because the hub takes each id
// once. A hub that never answered is taken for a wrong address, and not waited for.
func (p *Poster) Post(ctx context.Context, body []byte, report func(format string, args ...any)) (Answer, error) {
	inTime, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	for pause := MinPause; ; pause = min(2*pause, MaxPause) {
		a, err := p.Hub.SendEvents(inTime, body)
		refused, isProblem := errors.AsType[*Problem](err)
		wait := rand.N(pause)
		switch {
		case err == nil:
			p.reached = true
			return a, nil
		case isProblem && refused.IsTemporary():
			p.reached = true
			wait += max(0, refused.RetryAfter)
		case isProblem || !p.reached || ctx.Err() != nil:
			return a, err
		}
		report("trying again in %s: %v", wait.Round(time.Millisecond), err)
		if clock.Sleep(inTime, wait) != nil {
			if ctx.Err() != nil {
				return a, ctx.Err()
			}
			return a, fmt.Errorf("gave up on a batch after %s: %w", p.Timeout, stripProblem(err))
		}
	}
}

// stripProblem keeps an answer that may pass from being taken for a refusal.
func stripProblem(err error) error { return errors.New(err.Error()) }

// SendEvents sends a body once. If it fails, the hub may have taken the events.
func (c *Client) SendEvents(ctx context.Context, body []byte) (Answer, error) {
	var a Answer
	resp, err := c.Do(ctx, http.MethodPost, "/v1/data-available", "", body)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return Answer{}, c.Unreachable(err) // it broke off: ask again
	}
	return a, nil
}
