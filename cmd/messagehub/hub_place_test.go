package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A violation is an error that no crash explains.
type violation struct{ error }

// A hubPlace contains the current hub, which is replaced after each kill.
type hubPlace struct {
	mu    sync.Mutex
	hub   *hubclient.Client
	moved chan struct{} // closed when hub is replaced
}

func newPlace() *hubPlace { return &hubPlace{moved: make(chan struct{})} }

func (p *hubPlace) moveTo(url string) {
	hub, err := hubclient.New(url)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hub != nil {
		p.hub.Close()
	}
	p.hub = hub
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *hubPlace) currentHub() (*hubclient.Client, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hub, p.moved
}

// retryUntilAnswered calls try with the current hub until the hub answers. An
// error from the hub is final, unless it permits a retry.
func (p *hubPlace) retryUntilAnswered(ctx context.Context, try func(context.Context, *hubclient.Client) error) error {
	for {
		hub, moved := p.currentHub()
		var err error
		if hub != nil {
			inTime, cancel := context.WithTimeout(ctx, patience)
			err = try(inTime, hub)
			cancel()
			if err == nil {
				return nil
			}
			if _, ok := errors.AsType[violation](err); ok {
				return err
			}
			if refused, ok := errors.AsType[*hubclient.Problem](err); ok {
				if !refused.IsTemporary() || refused.Status == http.StatusBadGateway {
					return err
				}
				if clock.Sleep(ctx, 10*time.Millisecond) != nil {
					return ctx.Err()
				}
				continue
			}
		}
		select {
		case <-moved:
		case <-time.After(patience):
			return fmt.Errorf("no hub for %s: %w", patience, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
