package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/servicebus/internal/receiver"
	"github.com/messagehub/messagehub/domain"
)

// acceptors is the number of goroutines that accept sessions concurrently.
const acceptors = 8

// serveSessions serves the sessions of a queue until ctx ends, as many concurrently as there are
// slots. All events must have the given origin; the zero Origin allows all origins.
func (in *Ingestion) serveSessions(ctx, work context.Context, queue string, origin domain.Origin) {
	s := &sessions{
		Ingestion: in, queue: queue, origin: origin,
		bus:     receiver.NewConnection(queue, in.opts.Open, in.metrics.loops, in.opts.Logger),
		slots:   newSessionSlots(in.opts.Sessions, acceptors),
		parked:  make(chan struct{}, in.opts.Sessions),
		backoff: newBackoff(in.retryDelay),
	}
	var looking sync.WaitGroup
	for range min(acceptors, in.opts.Sessions) {
		looking.Go(func() { s.acceptSessions(ctx, work) })
	}
	looking.Wait()
	s.loops.Wait()
	s.bus.Close(ctx)
}

// sessions serves the sessions of one queue.
type sessions struct {
	*Ingestion
	queue   string
	origin  domain.Origin // required origin of all events; the zero Origin allows all
	bus     *receiver.Connection
	slots   *sessionSlots
	parked  chan struct{} // holds a token for each parked session
	backoff *sessionBackoff
	loops   sync.WaitGroup
}

// acceptSessions accepts sessions until ctx ends, and starts a loop for each session.
func (s *sessions) acceptSessions(ctx, work context.Context) {
	const shortWait = 5 * time.Second // wait time until the bus has replied once; long enough for a machine under load
	wait := shortWait
	for failures := 0; s.slots.takeSearchSlot(ctx) == nil; {
		client, err := s.bus.Acquire()
		if err == nil {
			var r *azservicebus.SessionReceiver
			if r, err = s.acceptSession(ctx, client, min(wait, s.limits.Wait)); err == nil {
				s.slots.occupySlot()
				s.loops.Go(func() {
					defer s.bus.Release(ctx, client)
					s.serveSession(ctx, work, r)
				})
			} else {
				s.bus.Release(ctx, client)
			}
		}
		if err != nil {
			s.slots.returnSearchSlot()
		}
		switch {
		case err == nil || busclient.ReasonOf(err) == busclient.Timeout:
			failures, wait = 0, s.limits.Wait
			s.bus.ReportSuccess()
		case ctx.Err() != nil:
		default:
			failures, wait = failures+1, shortWait
			s.bus.ReportFailure(ctx, client, err)
			busclient.Sleep(ctx, s.retryDelay(failures))
		}
	}
}

// acceptSession returns the next session that has a message. If none exists within the time wait,
// it fails with CodeTimeout.
func (s *sessions) acceptSession(ctx context.Context, client *busclient.Client, wait time.Duration) (*azservicebus.SessionReceiver, error) {
	const forTheAnswer = 10 * time.Second
	deadline := time.Now().Add(wait)
	patient, cancel := context.WithDeadline(ctx, deadline.Add(forTheAnswer))
	defer cancel()
	return client.AcceptNextSessionForQueue(earlierDeadline{patient, deadline}, s.queue, nil) //nolint:contextcheck // it is that of the caller
}

// An earlierDeadline is a context whose Deadline method returns a time before its real deadline.
// Microsoft's client sends the returned time to the bus as the timeout, and the bus replies at that
// time. If the client stopped waiting at the same time, it could not distinguish an empty queue
// from a lost bus. From shortly before the earlier time, Deadline returns the real deadline, so
// that the client can still write.
type earlierDeadline struct {
	context.Context //nolint:containedctx // it is one
	deadline        time.Time
}

// Deadline implements context.Context.
func (e earlierDeadline) Deadline() (time.Time, bool) {
	const moment = 250 * time.Millisecond // assumed duration of a write
	if time.Until(e.deadline) > moment {
		return e.deadline, true
	}
	return e.Context.Deadline()
}

// serveSession runs the loop of an accepted session and closes the session.
func (s *sessions) serveSession(ctx, work context.Context, r *azservicebus.SessionReceiver) {
	id := r.SessionID()
	store := &eventStore{in: s.Ingestion, logger: s.opts.Logger.With("queue", s.queue, "session", id), isSession: true, origin: s.origin}
	store.loop = receiver.NewSession(store.loopOptions(s.queue), r, s.slots)
	if wait := s.backoff.waitTime(id); wait > 0 {
		s.parkSession(ctx, store.loop, min(wait, store.loop.LockDuration()/2))
		return
	}
	s.metrics.sessions.Inc()
	err := store.loop.Run(ctx, work)
	s.metrics.sessions.Dec()
	s.recordResult(id, store, err)

	if busclient.IsPanic(err) {
		s.parkSession(ctx, store.loop, store.loop.UntilUnlocked())
		return
	}
	store.loop.Close(ctx)
	if err != nil && !errors.Is(err, busclient.ErrLinkLost) {
		busclient.Sleep(ctx, s.retryDelay(1)) // without this pause, a session that cannot be served would be accepted again immediately
	}
	s.slots.returnSessionSlot(store.loop.MadeWay())
}
