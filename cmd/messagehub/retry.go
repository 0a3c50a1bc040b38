package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// An answer is what a hub says to events that it takes.
type answer struct {
	Accepted   int `json:"accepted"`
	Duplicates int `json:"duplicates"`
}

// post sends a body until the hub takes or refuses it, or the time is over.
// Sending again what may have arrived is safe, for the hub takes each id once. A
// hub that never answered is taken for a wrong address, and not waited for.
func (s *sender) post(ctx context.Context, body []byte, progress *terminal.Progress) (answer, error) {
	inTime, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		a, err := s.postOnce(inTime, body)
		refused, isProblem := errors.AsType[*problem](err)
		wait := rand.N(pause)
		switch {
		case err == nil:
			s.reached = true
			return a, nil
		case isProblem && refused.passing():
			s.reached = true
			wait += max(0, refused.retryAfter)
		case isProblem || !s.reached || ctx.Err() != nil:
			return a, err
		}
		progress.Printf("trying again in %s: %v", wait.Round(time.Millisecond), err)
		if clock.Sleep(inTime, wait) != nil {
			if ctx.Err() != nil {
				return a, ctx.Err()
			}
			return a, fmt.Errorf("gave up on a batch after %s: %w", s.timeout, stripProblem(err))
		}
	}
}

// stripProblem keeps an answer that may pass from being taken for a refusal.
func stripProblem(err error) error { return errors.New(err.Error()) }

func (s *sender) postOnce(ctx context.Context, body []byte) (answer, error) {
	var a answer
	resp, err := s.hub.do(ctx, http.MethodPost, "/v1/data-available", "", body)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return answer{}, s.hub.unreachable(err) // it broke off: ask again
	}
	return a, nil
}
