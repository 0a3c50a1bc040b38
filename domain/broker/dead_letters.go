package broker

import (
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// DeadLetters returns up to limit dead jobs of a consumer, in the order of their messages, starting after an entry. An
// EntryID with Number -1 and priority 0 precedes all entries. The consumer and operators may call it.
func (s *Service) DeadLetters(ctx context.Context, creds *Credentials, consumer domain.PartyID, after domain.EntryID, limit int) ([]Job, error) {
	if err := s.requireConsumer(ctx, creds, consumer); err != nil {
		return nil, err
	}
	dead, err := s.ports.Cursors.DeadLetters(ctx, consumer.Cursor(), after, limit)
	if domain.KindOf(err) == domain.NotFound { // the consumer has no cursor yet
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	jobs := make([]Job, len(dead))
	for i := range dead {
		jobs[i] = s.jobOf(consumer, &dead[i])
	}
	return jobs, nil
}

// errNothingToDo reports that there is no job to re-trigger.
func errNothingToDo(what string) error {
	return domain.Errorf(domain.Conflict, "there is nothing to re-trigger: %s", what)
}

// RetriggerJob restarts a dead job with the full number of attempts, and retains its history. If an operator calls it
// for a job that waits for an attempt, it wakes the owner of the job. It fails with NotFound if the consumer or the
// message does not exist, and with Conflict if there is nothing to re-trigger.
func (s *Service) RetriggerJob(ctx context.Context, creds *Credentials, consumer domain.PartyID, message string) error {
	if err := s.requireConsumer(ctx, creds, consumer); err != nil {
		return err
	}
	e, published, err := s.findMessage(ctx, consumer, message)
	if err != nil {
		return err
	}
	c, err := s.consumerOf(ctx, consumer)
	if err != nil {
		return err
	}
	if !c.hasJobFor(e) {
		return domain.Errorf(domain.NotFound, "message %s has no job for consumer %s, which was registered later", e.MessageID(), consumer)
	}
	j, err := s.readJob(ctx, c, e, published)
	switch {
	case err != nil:
		return err
	case j.Status == Dead && c.standing.Expiry(e) != nil:
		return errNothingToDo("the message was removed before the consumer came to it")
	case j.Status == Dead:
		return s.requestRevival(ctx, c, e)
	case j.Status == Delivered:
		return errNothingToDo("the job is Delivered")
	case j.Status == Ended:
		return errNothingToDo("the job is Delivered, or its dead letter was removed")
	case !creds.IsAdmin:
		return errNothingToDo("the job is " + string(j.Status) + ", and a consumer can re-trigger dead jobs only")
	}
	s.wakeConsumer(consumer)
	return nil
}

// findMessage finds a message by its id or by the producer's id. It returns the entry and the time of publication. It
// also finds a message that only a dead letter still refers to.
func (s *Service) findMessage(ctx context.Context, consumer domain.PartyID, message string) (domain.EntryID, time.Time, error) {
	if e, isOurs := domain.ParseMessageID(message); isOurs {
		if r, err := s.ports.Cursors.Retry(ctx, consumer.Cursor(), e); err == nil {
			return e, r.Published, nil
		}
	}
	e, err := s.findEntry(ctx, consumer.Channel(), message)
	if err != nil {
		return domain.EntryID{}, time.Time{}, err
	}
	return e.Position.EntryID, e.Published, nil
}

// consumerOf returns a consumer with the standing of its cursor.
func (s *Service) consumerOf(ctx context.Context, id domain.PartyID) (*storedConsumer, error) {
	p, err := s.ports.Parties.Party(ctx, id)
	if err != nil {
		return nil, err
	}
	c := &storedConsumer{party: p}
	standing, err := s.ports.Cursors.Standing(ctx, id.Cursor())
	if domain.KindOf(err) == domain.NotFound {
		return c, nil
	}
	c.standing = &standing
	return c, err
}

// RetriggerMessage restarts all dead jobs of a message, and wakes the owners of jobs that wait for an attempt. It fails
// with NotFound if the message does not exist, and with Conflict if there is nothing to re-trigger.
func (s *Service) RetriggerMessage(ctx context.Context, creds *Credentials, channel domain.PartyID, message string) error {
	if err := creds.RequireAdmin(); err != nil {
		return err
	}
	if _, err := s.findParty(ctx, channel, s.opts.CacheTime); err != nil {
		return err
	}
	e, err := s.findEntry(ctx, channel, message)
	if err != nil {
		return err
	}
	consumers, err := s.readConsumers(ctx, channel)
	if err != nil {
		return err
	}
	found := false
	for i := range consumers {
		c := &consumers[i]
		if !c.hasJobFor(e.Position.EntryID) {
			continue
		}
		j, err := s.readJob(ctx, c, e.Position.EntryID, e.Published)
		if err != nil {
			return err
		}
		switch {
		case j.Status == Delivered, j.Status == Ended, j.Status == Dead && c.standing.Expiry(e.Position.EntryID) != nil:
			continue
		case j.Status == Dead:
			err = s.requestRevival(ctx, c, e.Position.EntryID)
		default:
			s.wakeConsumer(c.party.ID)
		}
		if err != nil {
			return err
		}
		found = true
	}
	if !found {
		return errNothingToDo("all jobs of the message have ended")
	}
	return nil
}

// wakeConsumer makes the owner of the consumer's cursor look for new messages and due attempts.
func (s *Service) wakeConsumer(consumer domain.PartyID) {
	s.opts.CheckStream(consumer.Stream())
	s.opts.Changed(consumer.Cursor())
}

// requestRevival stores a request to deliver a dead letter again with the full number of attempts. If the request is
// already stored, it does nothing.
func (s *Service) requestRevival(ctx context.Context, c *storedConsumer, e domain.EntryID) error {
	id := c.party.ID.Cursor()
	r, err := s.ports.Cursors.Retry(ctx, id, e)
	if err != nil {
		return err
	}
	_, err = s.ports.Shards.AddReplay(ctx, id, c.standing.Followed, domain.ReplayRequest{
		ID: s.opts.NewID(), Delivery: &domain.ReplayDelivery{Position: r.Position, Published: r.Published},
	})
	if err == nil || domain.KindOf(err) == domain.Conflict || domain.KindOf(err) == domain.Uncertain {
		s.opts.Changed(id) // also after an error: the request may be stored, or an earlier signal lost
	}
	if domain.KindOf(err) == domain.Conflict {
		requests, readErr := s.ports.Shards.Replays(ctx, id)
		if readErr == nil && hasRequest(requests, e) {
			return nil
		}
	}
	return err
}

// hasRequest reports whether requests contains a request for the entry e.
func hasRequest(requests domain.ReplayRequests, e domain.EntryID) bool {
	return slices.ContainsFunc(requests, func(r domain.ReplayRequest) bool {
		return r.Delivery != nil && r.Delivery.EntryID == e
	})
}
