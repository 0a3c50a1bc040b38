package broker

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A JobStatus is the status of the delivery of a message to a consumer.
type JobStatus string

// The statuses of a job.
const (
	InFlight      JobStatus = "In-flight"       // the first attempt has not ended
	RetryDelivery JobStatus = "Retry-Delivery"  // an attempt failed, and the next attempt is not due yet
	RetryInFlight JobStatus = "Retry-In-flight" // an attempt after a failure is under way on this node, or the message is in a bundle
	Delivered     JobStatus = "Delivered"
	Dead          JobStatus = "Dead"  // all attempts failed
	Ended         JobStatus = "Ended" // the job was either Delivered or Dead; its dead letter, if any, was removed
)

// A Job is the delivery of a message to a consumer.
type Job struct {
	Consumer domain.PartyID // the consumer's name, which is also the name of the job
	Message  string         // id
	Status   JobStatus
	Attempts int              // failed attempts since the job began or was last re-triggered
	History  []domain.Attempt // past attempts, if an attempt has failed
	Due      time.Time        // when the next attempt is due
	Reason   string           // reason, if the job is Dead
}

// A storedConsumer is a consumer and the standing of its cursor.
type storedConsumer struct {
	party    *repository.Party
	standing *domain.Standing // nil if the consumer has no cursor yet
}

// hasTaken reports whether the cursor of the consumer has reached a message. It is also true if the consumer was
// registered after the message.
func (c *storedConsumer) hasTaken(e domain.EntryID) bool {
	return !c.hasJobFor(e) || c.standing != nil && e.Number < c.standing.Position(e.Priority).Number
}

// hasJobFor reports whether the consumer was registered before the message.
func (c *storedConsumer) hasJobFor(e domain.EntryID) bool {
	for _, p := range c.party.Start.Positions {
		if p.Priority == e.Priority {
			return e.Number >= p.Number
		}
	}
	return true
}

// isUntried reports whether the consumer has taken a message but no attempt has ended. The first call is then under
// way, or the message is in a bundle.
func (c *storedConsumer) isUntried(e domain.EntryID) bool {
	isEntry := func(p domain.Position) bool { return p.EntryID == e }
	held := c.standing.Held
	return slices.ContainsFunc(c.standing.Open, isEntry) || held != nil && slices.ContainsFunc(held.Taken, isEntry)
}

const reasonExpired = "the message was removed, because its retention had passed, before the consumer came to it"

const (
	consumersAtATime = 1000
	readsAtATime     = 32
)

// readConsumers returns the consumers of a channel, sorted by name. It reads them one by one.
func (s *Service) readConsumers(ctx context.Context, channel domain.PartyID) ([]storedConsumer, error) {
	var all []storedConsumer
	for first := ""; ; {
		parties, err := s.ports.Parties.Parties(ctx, channel.Consumers(), first, consumersAtATime+1)
		if err != nil {
			return nil, err
		}
		for _, p := range parties[:min(len(parties), consumersAtATime)] {
			all = append(all, storedConsumer{party: p})
		}
		if len(parties) <= consumersAtATime {
			break
		}
		first = parties[consumersAtATime].ID.String()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsAtATime)
	for i := range all {
		g.Go(func() error {
			standing, err := s.ports.Cursors.Standing(ctx, all[i].party.ID.Cursor())
			if domain.KindOf(err) == domain.NotFound {
				return nil
			}
			all[i].standing = &standing
			return err
		})
	}
	return all, g.Wait()
}

// readJobs returns the job of each consumer for a message. published is when the message was published.
func (s *Service) readJobs(ctx context.Context, consumers []storedConsumer, e domain.EntryID, published time.Time) ([]Job, error) {
	var wanted []*storedConsumer
	for i := range consumers {
		if consumers[i].hasJobFor(e) {
			wanted = append(wanted, &consumers[i])
		}
	}
	jobs := make([]Job, len(wanted))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsAtATime)
	for i, c := range wanted {
		g.Go(func() (err error) {
			jobs[i], err = s.readJob(ctx, c, e, published)
			return err
		})
	}
	return jobs, g.Wait()
}

// readJob returns the job of one consumer for a message. published is when the message was published.
func (s *Service) readJob(ctx context.Context, c *storedConsumer, e domain.EntryID, published time.Time) (Job, error) {
	j := Job{Consumer: c.party.ID, Message: e.MessageID(), Status: InFlight}
	if !c.hasTaken(e) {
		return j, nil
	}
	if c.isUntried(e) {
		return j, nil
	}
	if c.standing.Expiry(e) != nil {
		j.Status, j.Reason = Dead, reasonExpired
		return j, nil
	}
	if c.standing.Retries == 0 && c.standing.Counters.Errored == 0 {
		j.Status = Delivered
		return j, nil
	}
	r, err := s.ports.Cursors.Retry(ctx, c.party.ID.Cursor(), e)
	if domain.KindOf(err) == domain.NotFound {
		j.Status = s.endStatus(c, published)
		return j, nil
	}
	if err != nil {
		return j, err
	}
	j = s.jobOf(c.party.ID, &r)
	if j.Status == RetryDelivery && c.standing.Held.Has(e) {
		j.Status, j.Due = RetryInFlight, time.Time{}
	}
	return j, nil
}

// endStatus returns the status of an ended job for which no dead letter is stored. A dead letter is stored later than
// its message. So if the message is younger than the retention of dead letters, the job was Delivered.
func (s *Service) endStatus(c *storedConsumer, published time.Time) JobStatus {
	if c.standing.Counters.Errored > 0 && s.opts.Clock().Sub(published) >= repository.DeadLetterRetention {
		return Ended
	}
	return Delivered
}

// jobOf returns the job of a failed delivery.
func (s *Service) jobOf(consumer domain.PartyID, r *domain.Retry) Job {
	j := Job{
		Consumer: consumer, Message: r.MessageID(), Status: RetryDelivery,
		Attempts: r.Attempts, History: r.History, Due: r.Due, Reason: r.Reason,
	}
	switch {
	case r.Dead:
		j.Status, j.Due = Dead, time.Time{}
	case s.opts.IsCalling(consumer.Cursor(), r.EntryID):
		j.Status, j.Due = RetryInFlight, time.Time{}
	}
	return j
}
