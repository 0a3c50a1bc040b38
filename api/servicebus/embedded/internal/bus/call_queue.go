package bus

import "sync"

// A callQueue calls callbacks one at a time, in order. Callers add callbacks under the lock of the bus. A separate
// goroutine calls them without this lock, so that commits do not wait for callbacks. A callback may use the bus, and so
// add further callbacks.
type callQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	calls   []func()
	calling bool
	closed  bool
	ended   chan struct{}
}

func newCallQueue() *callQueue {
	o := &callQueue{ended: make(chan struct{})}
	o.changed.L = &o.mu
	return o
}

func (o *callQueue) addCall(call func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, call)
	o.changed.Broadcast()
}

// runCalls calls the queued callbacks until the queue is closed.
func (o *callQueue) runCalls() {
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
		o.makeCalls()
	}
}

// makeCalls calls the queued callbacks. It releases the lock of the queue during each call.
func (o *callQueue) makeCalls() {
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

// closeAndWait closes the queue and waits until all calls have returned.
func (o *callQueue) closeAndWait() {
	o.mu.Lock()
	o.closed = true
	o.changed.Broadcast()
	o.mu.Unlock()
	<-o.ended
}

// callRemaining calls the callbacks that were added after closeAndWait. They report that the bus is closed.
func (o *callQueue) callRemaining() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.closed && !o.calling && len(o.calls) > 0 {
		o.makeCalls()
	}
}

// waitIdle waits until no callback is queued or running.
func (o *callQueue) waitIdle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.calling || len(o.calls) > 0 {
		o.changed.Wait()
	}
}
