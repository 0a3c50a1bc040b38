package repositorytest

import (
	"context"
	"errors"
	"io"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A PeekedBundle is an open bundle with its events.
type PeekedBundle struct {
	domain.Bundle
	Events  []repository.StoredEvent
	Waiting int64
	Behind  domain.Backlog
}

// Peek returns the open bundle of the groups. If no bundle is open, it opens the next one under id, or
// under a new id if id is zero. A Conflict other than ErrBundleIDInUse means that another Peek was
// faster. changes may modify a new bundle, for example its content mode.
func Peek(ctx context.Context, s Stores, actor domain.ActorID, groups []domain.Group, id domain.BundleID, changes ...func(*domain.Bundle)) (PeekedBundle, error) {
	next, err := s.Events.NextUnacknowledged(ctx, actor, groups)
	if err != nil {
		return PeekedBundle{}, err
	}
	if next.Open != nil {
		events, err := ReadEvents(ctx, next.Run)
		return PeekedBundle{*next.Open, events, next.Waiting, next.Run.BacklogAfter(next.Open.Count)}, err
	}
	bundle, events, err := MakeBundle(ctx, next.Run)
	if err != nil {
		return PeekedBundle{}, err
	}
	if id != (domain.BundleID{}) {
		bundle.ID = id
	}
	for _, change := range changes {
		change(&bundle)
	}
	bundle, err = s.Bundles.Add(ctx, bundle, next.Run)
	return PeekedBundle{bundle, events, next.Waiting, next.Run.BacklogAfter(bundle.Count)}, err
}

// OnRequest sets the content mode of a new bundle to request.
func OnRequest(b *domain.Bundle) {
	b.Content = domain.Request
	b.List = "lists/" + b.ID.String()
}

// ObjectOf returns the name of the object in which Drain stores the content of a bundle.
func ObjectOf(id domain.BundleID) string { return "answers/" + id.String() }

// MakeBundle makes a bundle, under a new id, from the events of run.
func MakeBundle(ctx context.Context, run repository.Run) (domain.Bundle, []repository.StoredEvent, error) {
	bundle := domain.Bundle{
		ID:      NewBundleID(),
		Group:   run.Group(),
		Cabinet: run.Cabinet(),
		Content: domain.Manifest,
		Format:  domain.JSON,
		Version: "1.0",
	}
	var filler domain.Filler
	var events []repository.StoredEvent
	for e, err := range run.Events(ctx) {
		if err != nil {
			return domain.Bundle{}, nil, err
		}
		if !filler.Take(&e.Event, e.Sequence) {
			break
		}
		events = append(events, e)
		if filler.Full() {
			break
		}
	}
	filler.Fill(&bundle)
	return bundle, events, nil
}

// ReadEvents returns all events of run.
func ReadEvents(ctx context.Context, run repository.Run) ([]repository.StoredEvent, error) {
	var events []repository.StoredEvent
	for e, err := range run.Events(ctx) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// ReadPayload returns a payload from the content store.
func ReadPayload(ctx context.Context, s Stores, at repository.Section) ([]byte, error) {
	r, err := s.Content.Open(ctx, at)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// lostRaces is the number of consecutive conflicts after which Drain fails. A correct store causes far
// fewer, and a faulty store fails a test instead of blocking it.
const lostRaces = 1000

// DrainNotices removes the notices of an actor from the outbox until the outbox is empty, and returns
// them in order. If it fails, it returns the notices that it has removed so far.
func DrainNotices(ctx context.Context, s Stores, actor domain.ActorID) ([]domain.Notice, error) {
	var drained []domain.Notice
	for {
		notices, err := s.Outbox.Notices(ctx, actor)
		if err != nil || len(notices) == 0 {
			return drained, err
		}
		for _, n := range notices {
			drained = append(drained, n)
			if err := s.Outbox.Delivered(ctx, n); err != nil {
				return drained, err
			}
		}
	}
}

// Drain peeks and dequeues until no event waits in groups, and returns the bundles that it has dequeued.
// Concurrent calls for one actor share its bundles. Drain stores content for bundles that wait for their
// domain. If it fails, it returns the bundles that it has dequeued so far.
func Drain(ctx context.Context, s Stores, actor domain.ActorID, groups []domain.Group) ([]PeekedBundle, error) {
	var drained []PeekedBundle
	for lost := 0; ; {
		peeked, err := Peek(ctx, s, actor, groups, domain.BundleID{})
		if errors.Is(err, domain.ErrNoData) {
			return drained, nil
		}
		if err == nil && peeked.IsUnanswered() {
			_, err = s.Answers.Answer(ctx, actor, peeked.ID, ObjectOf(peeked.ID), domain.Body{})
		}
		if err == nil {
			_, err = s.Bundles.Acknowledge(ctx, actor, peeked.ID)
		}
		switch kind := domain.KindOf(err); {
		case err == nil:
			drained = append(drained, peeked)
			lost = 0
		case kind != domain.Conflict && kind != domain.NotFound || lost == lostRaces:
			return drained, err
		default: // another Peek has opened a bundle, or another Dequeue has closed it
			lost++
		}
	}
}
