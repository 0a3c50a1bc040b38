package busclient

import (
	"context"
	"sync"
)

// A TaskGroup runs tasks that may continue after the call that started them has returned. Tasks
// contain calls to Microsoft's client, which must not be interrupted.
type TaskGroup struct {
	ctx  context.Context //nolint:containedctx // ends with Stop
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup // incremented only while mu is held and closed is false
}

// NewTaskGroup returns a group without tasks.
func NewTaskGroup() *TaskGroup {
	g := &TaskGroup{}
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// Context returns the context of the tasks. It ends when Stop is called.
func (g *TaskGroup) Context() context.Context { return g.ctx }

// Stop ends the context of the tasks.
func (g *TaskGroup) Stop() { g.stop() }

// Go runs f in a goroutine. After Close, Go does not run f and returns false.
func (g *TaskGroup) Go(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.tasks.Go(f)
	return true
}

// Close prevents new tasks and waits for the running tasks. If ctx ends first, Close stops the
// tasks and returns the error of ctx.
func (g *TaskGroup) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	done := make(chan struct{})
	go func() { // this goroutine ends when the tasks end, and each task has a deadline
		g.tasks.Wait()
		close(done)
	}()
	defer g.stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
