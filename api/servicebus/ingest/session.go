package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

// acceptors is how many look for sessions at the same time.
const acceptors = 8

// serveSessions serves the sessions of a queue, as many at a time as there are
// places, until ctx ends.
func (in *Ingestion) serveSessions(ctx, work context.Context, queue string) {
	s := &sessions{
		Ingestion: in, queue: queue,
		bus:      newQueueConnection(&in.opts, queue, in.metrics.connected),
		places:   newPlaces(in.opts.Sessions, acceptors),
		aside:    make(chan struct{}, in.opts.Sessions),
		setbacks: newSetbacks(in.delay),
	}
	var looking sync.WaitGroup
	for range min(acceptors, in.opts.Sessions) {
		looking.Go(func() { s.look(ctx, work) })
	}
	looking.Wait()
	s.lanes.Wait()
	s.bus.close(ctx)
}

// sessions are those of one queue that are being served.
type sessions struct {
	*Ingestion
	queue    string
	bus      *queueConnection
	places   *places
	aside    chan struct{} // a slot for each session that is set aside
	setbacks *setbacks
	lanes    sync.WaitGroup
}

// look finds sessions and starts a lane for each, until ctx ends.
func (s *sessions) look(ctx, work context.Context) {
	const shortWait = 5 * time.Second // when it is not known whether the bus answers at all: long enough for a busy machine
	wait := shortWait
	for failures := 0; s.places.take(ctx) == nil; {
		client, err := s.bus.Acquire()
		if err == nil {
			var r *azservicebus.SessionReceiver
			if r, err = s.accept(ctx, client, min(wait, s.limits.Wait)); err == nil {
				s.places.settle()
				s.lanes.Go(func() {
					defer s.bus.Release(ctx, client)
					s.serve(ctx, work, r)
				})
			} else {
				s.bus.Release(ctx, client)
			}
		}
		if err != nil {
			s.places.giveBack()
		}
		switch {
		case err == nil || busclient.ReasonOf(err) == busclient.Timeout:
			failures, wait = 0, s.limits.Wait
			s.bus.reportSuccess()
		case ctx.Err() != nil:
		default:
			failures, wait = failures+1, shortWait
			s.bus.reportFailure(ctx, client, err)
			pause(ctx, s.delay(failures))
		}
	}
}

// accept returns the next session with a message. If there is none for a while it
// fails with CodeTimeout.
func (s *sessions) accept(ctx context.Context, client *busclient.Client, wait time.Duration) (*azservicebus.SessionReceiver, error) {
	const forTheAnswer = 10 * time.Second
	deadline := time.Now().Add(wait)
	patient, cancel := context.WithDeadline(ctx, deadline.Add(forTheAnswer))
	defer cancel()
	return client.AcceptNextSessionForQueue(earlier{patient, deadline}, s.queue, nil) //nolint:contextcheck // it is that of the caller
}

// earlier is a context that ends later than it says. The client has the bus answer
// at the deadline, and would not be there to hear it if it left then. Without the
// answer it is not known whether there is no session, or no bus. When the time has
// come it tells the truth: the client has something to write when the answer is there,
// and would find that it is too late.
type earlier struct {
	context.Context //nolint:containedctx // it is one
	deadline        time.Time
}

// Deadline implements context.Context.
func (e earlier) Deadline() (time.Time, bool) {
	const moment = 250 * time.Millisecond // in which a write that has begun should succeed
	if time.Until(e.deadline) > moment {
		return e.deadline, true
	}
	return e.Context.Deadline()
}

// serve is the lane of a session, from when it was accepted to when it is closed.
func (s *sessions) serve(ctx, work context.Context, r *azservicebus.SessionReceiver) {
	l := newLane(s.Ingestion, s.queue, r)
	l.session = &ownSession{SessionReceiver: r, id: r.SessionID(), places: s.places, keptFor: lockDuration(r.LockedUntil().Sub(s.opts.Clock()))}
	l.logger = l.logger.With("session", l.session.id)
	if wait := s.setbacks.wait(l.session.id); wait > 0 {
		s.setAside(ctx, l, min(wait, l.session.keptFor/2))
		return
	}
	s.metrics.sessions.Inc()
	err := l.run(ctx, work)
	s.metrics.sessions.Dec()
	s.learn(l, err)

	if busclient.IsPanic(err) {
		s.setAside(ctx, l, l.untilUnlocked())
		return
	}
	l.close(ctx)
	if err != nil && !errors.Is(err, busclient.ErrLinkLost) {
		pause(ctx, s.delay(1)) // or a session that cannot be served would be accepted at once, again and again
	}
	s.places.leave(l.moving)
}

// lockDuration takes what is left of a lock by two clocks, and makes something of
// it that is safe if these differ. No lock lasts longer than 5 minutes.
func lockDuration(left time.Duration) time.Duration {
	return min(max(left, time.Second), 5*time.Minute)
}
