package push

import (
	"sync"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// appenders contains an appender for each stream to which this process appends.
type appenders struct {
	store *Store

	mu sync.Mutex
	of map[domain.StreamName]*appender
}

// maxAppenders limits the number of unused appenders. They are retained because each caches the head of
// its stream.
const maxAppenders = 1000

func (as *appenders) acquire(stream domain.StreamName) *appender {
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.of[stream]
	if a == nil {
		a = &appender{store: as.store, stream: stream}
		a.leader = client.NewLeader[*appending]("append to "+stream.String(), appendTimeout, a.runRound, func() { a.head = nil })
		if as.of == nil {
			as.of = make(map[domain.StreamName]*appender)
		}
		as.of[stream] = a
	}
	a.users++
	return a
}

func (as *appenders) release(a *appender) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if a.users--; a.users == 0 && len(as.of) > maxAppenders {
		delete(as.of, a.stream)
	}
}

// newestHead returns the head of a stream that this process last wrote or read. It returns nil if no head
// is cached.
func (as *appenders) newestHead(stream domain.StreamName) *streamHead {
	as.mu.Lock()
	defer as.mu.Unlock()
	if a := as.of[stream]; a != nil {
		return a.newest.Load()
	}
	return nil
}
