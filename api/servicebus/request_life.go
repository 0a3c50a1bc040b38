package servicebus

import (
	"context"
	"sync"
)

// A life is that of everything that was started and outlasts the call that started
// it, because the client is not to be interrupted.
type life struct {
	ctx  context.Context // ends with stop
	stop context.CancelFunc

	mu    sync.Mutex
	ended bool
	work  sync.WaitGroup // grows only while mu is held and ended is false
}

func newLife() *life {
	l := &life{}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// run runs f beside its caller, unless this life has ended.
func (l *life) run(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.work.Go(f)
	return true
}

// end starts nothing any more and waits for what is under way. When ctx ends first,
// all of that is interrupted.
func (l *life) end(ctx context.Context) error {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	done := make(chan struct{})
	go func() { // ends with the work, each part of which has a deadline
		l.work.Wait()
		close(done)
	}()
	defer l.stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
