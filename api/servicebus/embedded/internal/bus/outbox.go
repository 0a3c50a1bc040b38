package bus

import "sync"

// An outbox makes the calls to those outside, in order and one at a time, after
// the lock of the bus was given back. Whoever finds calls in it makes them,
// so it needs no goroutine; a call may use the bus, whose calls follow it.
type outbox struct {
	mu      sync.Mutex
	calls   []func()
	running bool
	idle    sync.Cond // told when running ends
}

func (o *outbox) add(call func()) {
	o.mu.Lock()
	o.calls = append(o.calls, call)
	o.mu.Unlock()
}

func (o *outbox) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.running {
		return
	}
	o.running = true
	for len(o.calls) > 0 {
		calls := o.calls
		o.calls = nil
		o.mu.Unlock()
		for _, call := range calls {
			call()
		}
		o.mu.Lock()
	}
	o.running = false
	o.idle.Broadcast()
}

// wait returns when no call is under way.
func (o *outbox) wait() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.running {
		o.idle.Wait()
	}
}
