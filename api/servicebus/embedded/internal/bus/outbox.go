package bus

import "sync"

// An outbox makes the calls to those outside, in order and one at a time. They
// are added under the lock of the bus, and made without it by a goroutine of
// their own, so that no commit waits for what others do in them. A call may
// use the bus; what that has to say follows in its turn.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond
	calls   []func()
	calling bool
	closed  bool
	ended   chan struct{}
}

func newOutbox() *outbox {
	o := &outbox{ended: make(chan struct{})}
	o.changed.L = &o.mu
	return o
}

func (o *outbox) add(call func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, call)
	o.changed.Broadcast()
}

// serve makes calls until close.
func (o *outbox) serve() {
	defer close(o.ended)
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for o.calling || len(o.calls) == 0 {
			if o.closed && !o.calling {
				return
			}
			o.changed.Wait()
		}
		o.call()
	}
}

// call makes the calls there are. It gives back the lock meanwhile.
func (o *outbox) call() {
	calls := o.calls
	o.calls, o.calling = nil, true
	o.mu.Unlock()
	for _, call := range calls {
		call()
	}
	o.mu.Lock()
	o.calling = false
	o.changed.Broadcast()
}

// close returns when all calls are made.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.changed.Broadcast()
	o.mu.Unlock()
	<-o.ended
}

// late makes the calls that refuse what came after close.
func (o *outbox) late() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.closed && !o.calling && len(o.calls) > 0 {
		o.call()
	}
}

// idle returns when there is nothing to call.
func (o *outbox) idle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.calling || len(o.calls) > 0 {
		o.changed.Wait()
	}
}
