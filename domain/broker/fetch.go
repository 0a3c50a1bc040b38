package broker

import (
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Bundle contains messages that a consumer fetches. The hub does not also call the consumer with these messages.
type Bundle struct {
	ID       string
	Messages []*Message // highest priority first; each has its payload, but no jobs and status
}

// The limits of a bundle. A bundle always has at least one message, even if that exceeds the size limit.
const (
	MaxPeek      = domain.MaxHeld
	maxPeekBytes = 4 << 20
)

const (
	maxPeekTries  = 4
	maxBundleID   = 64                     // bytes
	standingEvery = 100 * time.Millisecond // interval at which the standing is polled for changes by other nodes
)

// Peek returns a bundle of up to limit messages that wait for a consumer: failed ones first, then untried ones. It
// returns the same bundle until that bundle is dequeued; until then, the hub does not call the consumer with these
// messages. Messages that have expired are omitted. Peek returns nil if no messages wait, or if the consumer is being
// called with all that do.
//
// The owner of the cursor makes the bundle. If the owner takes too long, Peek fails with Unavailable, and can be
// repeated.
func (s *Service) Peek(ctx context.Context, creds *Credentials, consumer domain.PartyID, limit int, reserve Reserve) (*Bundle, error) {
	if err := s.requireConsumer(ctx, creds, consumer); err != nil {
		return nil, err
	}
	if limit < 1 || limit > MaxPeek {
		return nil, domain.Errorf(domain.Invalid, "size: want 1 to %d, got %d", MaxPeek, limit)
	}
	for range maxPeekTries {
		standing, err := s.ports.Cursors.Standing(ctx, consumer.Cursor())
		if domain.KindOf(err) == domain.NotFound { // the consumer has no cursor yet
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		// The standing that was read may be stale. Therefore Peek returns a bundle only after the owner has executed a
		// request that this call has stored.
		var entries []domain.Position
		if standing.Held == nil {
			if entries, err = s.findWaiting(ctx, consumer, &standing, limit); err != nil || len(entries) == 0 {
				return nil, err
			}
		}
		followed, err := s.submitRequest(ctx, consumer, &standing, domain.ReplayRequest{Peek: &domain.PeekRequest{Limit: limit, Entries: entries}})
		switch {
		case domain.KindOf(err) == domain.Conflict: // the standing that was read is stale
		case err != nil:
			return nil, err
		case followed.Held != nil:
			return s.readBundle(ctx, consumer, followed.Held, reserve)
		}
	}
	return nil, nil
}

// Dequeue confirms that the consumer has received the messages of a bundle, and so ends their deliveries. It fails with
// NotFound if there is no such bundle. Dequeuing one of the last bundles again changes nothing. If the owner of the
// cursor takes too long, Dequeue fails with Unavailable, and can be repeated.
func (s *Service) Dequeue(ctx context.Context, creds *Credentials, consumer domain.PartyID, bundle string) error {
	if err := s.requireConsumer(ctx, creds, consumer); err != nil {
		return err
	}
	errNone := domain.Errorf(domain.NotFound, "consumer %s has no bundle %s that it could dequeue", consumer, domain.Shorten(bundle))
	if bundle == "" || len(bundle) > maxBundleID {
		return errNone
	}
	for range maxPeekTries {
		standing, err := s.ports.Cursors.Standing(ctx, consumer.Cursor())
		switch {
		case domain.KindOf(err) == domain.NotFound:
			return errNone
		case err != nil:
			return err
		case standing.HasDequeued(bundle):
			return nil
		}
		followed, err := s.submitRequest(ctx, consumer, &standing, domain.ReplayRequest{Dequeue: bundle})
		switch {
		case domain.KindOf(err) == domain.Conflict: // the standing that was read is stale
		case err != nil:
			return err
		case followed.HasDequeued(bundle):
			return nil
		default:
			return errNone
		}
	}
	return newSlowOwnerError(consumer)
}

func newSlowOwnerError(consumer domain.PartyID) error {
	return domain.Errorf(domain.Unavailable, "no node has answered for consumer %s in time; send the request again", consumer)
}

// submitRequest stores a request for the owner of a cursor. It returns the standing of the cursor after the owner has
// executed the request. If before was a stale read, it fails with Conflict.
func (s *Service) submitRequest(ctx context.Context, consumer domain.PartyID, before *domain.Standing, r domain.ReplayRequest) (domain.Standing, error) {
	id := consumer.Cursor()
	deadline := s.opts.After(s.opts.FetchTimeout)
	r.ID = s.opts.NewID()
	number, err := s.ports.Shards.AddReplay(ctx, id, before.Followed, r)
	if err == nil || domain.KindOf(err) == domain.Uncertain {
		s.opts.Changed(id) // also after an error: the request may be stored, or an earlier signal lost
	}
	if err != nil {
		return domain.Standing{}, err
	}
	for {
		settled := s.opts.Settled(id) // subscribe before the read, so that no settlement is missed
		standing, err := s.ports.Cursors.Standing(ctx, id)
		if err != nil || standing.Followed >= number {
			return standing, err
		}
		select {
		case <-settled:
		case <-s.opts.After(standingEvery):
		case <-deadline:
			return standing, newSlowOwnerError(consumer)
		case <-ctx.Done():
			return standing, ctx.Err()
		}
	}
}

// findWaiting returns the positions of messages that wait for a consumer: retries, then open deliveries, then untaken
// entries, each with the highest priority first. It may return more than limit positions, because the consumer may be
// being called with some of the messages.
func (s *Service) findWaiting(ctx context.Context, consumer domain.PartyID, standing *domain.Standing, limit int) ([]domain.Position, error) {
	waiting, err := s.findRetries(ctx, consumer, standing, limit+domain.MaxConcurrency)
	if err != nil {
		return nil, err
	}
	waiting = append(waiting, standing.Open...)
	read, _, err := s.readEntries(ctx, consumer.Stream(), waiting)
	if err != nil {
		return nil, err
	}
	var b boundedEntries
	for _, p := range waiting {
		if e := read[p.EntryID]; e != nil { // if e is nil, the entry has expired or is not visible yet
			b.add(e)
		}
	}
	end, err := s.ports.Streams.End(ctx, consumer.Stream())
	if err != nil {
		return nil, err
	}
	fresh := 0
	for _, last := range slices.Backward(end.Positions) { // iterate from the highest priority down
		at := standing.Position(last.Priority)
		if at.Number >= last.Number || fresh >= limit || b.isFull {
			continue
		}
		found, err := s.ports.Streams.Read(ctx, consumer.Stream(), at, limit-fresh)
		if err != nil {
			return nil, err
		}
		for i := range found.Entries {
			b.add(&found.Entries[i])
		}
		fresh += len(found.Entries)
	}
	return b.positions, nil
}

// findRetries returns up to limit positions of failed deliveries, highest priority first.
func (s *Service) findRetries(ctx context.Context, consumer domain.PartyID, standing *domain.Standing, limit int) ([]domain.Position, error) {
	var all []domain.Position
	if standing.Retries == 0 {
		return nil, nil
	}
	for _, at := range slices.Backward(standing.At) { // iterate from the highest priority down
		after := domain.EntryID{Priority: at.Priority, Number: -1}
		retries, err := s.ports.Cursors.Retries(ctx, consumer.Cursor(), after, limit)
		if err != nil {
			return nil, err
		}
		for i := range retries {
			if retries[i].Priority == at.Priority && len(all) < limit {
				all = append(all, retries[i].Position)
			}
		}
		if len(all) >= min(limit, standing.Retries) {
			break
		}
	}
	return all, nil
}

// boundedEntries collects positions until an entry would exceed the limits of a bundle.
type boundedEntries struct {
	positions []domain.Position
	bytes     int64
	isFull    bool
}

func (b *boundedEntries) add(e *repository.Entry) {
	size := payloadSize(e)
	b.isFull = b.isFull || len(b.positions) > 0 && b.bytes+size > maxPeekBytes
	if !b.isFull {
		b.positions = append(b.positions, e.Position)
		b.bytes += size
	}
}

// readEntries reads the entries at positions. The result omits expired entries. If an entry is missing because this
// node cannot see it yet, isComplete is false.
func (s *Service) readEntries(ctx context.Context, stream domain.StreamName, positions []domain.Position) (read map[domain.EntryID]*repository.Entry, isComplete bool, err error) {
	sorted := slices.Clone(positions)
	slices.SortFunc(sorted, func(a, b domain.Position) int { return domain.CompareEntries(a.EntryID, b.EntryID) })
	read, isComplete = make(map[domain.EntryID]*repository.Entry), true
	for len(sorted) > 0 {
		first, n := sorted[0], 1
		for n < len(sorted) && sorted[n].Priority == first.Priority && sorted[n].Number < first.Number+listBatch {
			n++
		}
		for at, last := first, sorted[n-1].Number; at.Number <= last; {
			found, err := s.ports.Streams.Read(ctx, stream, at, int(last-at.Number)+1) // read all entries of a page together
			if err != nil {
				return nil, false, err
			}
			if len(found.Entries) == 0 {
				isComplete = isComplete && found.Start.Number > last
				break
			}
			for i := range found.Entries {
				read[found.Entries[i].Position.EntryID] = &found.Entries[i]
			}
			at = found.Entries[len(found.Entries)-1].Position.Next()
		}
		sorted = sorted[n:]
	}
	return read, isComplete, nil
}

// readBundle reads the messages of a stored bundle.
func (s *Service) readBundle(ctx context.Context, consumer domain.PartyID, held *domain.HeldBundle, reserve Reserve) (*Bundle, error) {
	positions := held.Positions()
	read, isComplete, err := s.readEntries(ctx, consumer.Stream(), positions)
	if err != nil {
		return nil, err
	}
	if !isComplete { // an incomplete bundle would let the consumer dequeue messages that it did not get
		return nil, domain.Errorf(domain.Unavailable, "the bundle of consumer %s has messages that are not visible to this node yet; send the request again", consumer)
	}
	size := int64(0)
	for _, e := range read {
		size += payloadSize(e)
	}
	if err := reserve.acquireBytes(ctx, size); err != nil {
		return nil, err
	}
	b := &Bundle{ID: held.ID}
	for _, p := range positions {
		e := read[p.EntryID]
		if e == nil {
			continue
		}
		m := describeMessage(e)
		if !e.PayloadAt.IsZero() {
			if m.Payload, err = s.readPayload(ctx, e.PayloadAt); err != nil {
				return nil, err
			}
		}
		b.Messages = append(b.Messages, m)
	}
	return b, nil
}
