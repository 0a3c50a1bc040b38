package broker

import (
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Bundle has messages that a consumer fetches. The hub does not call the consumer with them.
type Bundle struct {
	ID       string
	Messages []*Message // with their payloads, the highest priority first; without jobs and statuses
}

// The limits of a bundle. A bundle has at least one message, however large.
const (
	MaxPeek      = domain.MaxHeld
	maxPeekBytes = 4 << 20
)

const (
	maxPeekTries  = 4
	maxBundleID   = 64                     // bytes
	standingEvery = 100 * time.Millisecond // interval between reads of the standing, because another node may settle
)

// Peek returns a bundle of up to limit messages that wait for a consumer, because their attempts
// have failed or they were not tried yet. Peek returns the same bundle until it is dequeued. Until
// then, the hub does not call the consumer with these messages. A bundle lacks its messages that
// have expired. Peek returns nil if no messages wait, or if all waiting messages are being called.
//
// The owner of the cursor makes the bundle. Peek fails with Unavailable if the owner takes too
// long; the caller may repeat the Peek.
func (s *Service) Peek(ctx context.Context, creds *Credentials, consumer domain.PartyID, limit int, reserve Reserve) (*Bundle, error) {
	if err := s.requireConsumer(ctx, creds, consumer); err != nil {
		return nil, err
	}
	if limit < 1 || limit > MaxPeek {
		return nil, domain.Errorf(domain.Invalid, "size: want 1 to %d, got %d", MaxPeek, limit)
	}
	for range maxPeekTries {
		standing, err := s.ports.Cursors.Standing(ctx, consumer.Cursor())
		if domain.KindOf(err) == domain.NotFound { // the cursor was not created
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		// The standing may be a stale read. So a bundle is returned only after the owner of the
		// cursor has carried out a request that was stored after the call began.
		var entries []domain.Position
		if standing.Held == nil {
			if entries, err = s.findWaiting(ctx, consumer, &standing, limit); err != nil || len(entries) == 0 {
				return nil, err
			}
		}
		followed, err := s.submitRequest(ctx, consumer, &standing, domain.ReplayRequest{Peek: &domain.PeekRequest{Limit: limit, Entries: entries}})
		switch {
		case domain.KindOf(err) == domain.Conflict: // the standing was a stale read
		case err != nil:
			return nil, err
		case followed.Held != nil:
			return s.readBundle(ctx, consumer, followed.Held, reserve)
		}
	}
	return nil, nil
}

// Dequeue ends the deliveries of a bundle: the consumer has its messages. It fails with NotFound if
// the consumer has no such bundle. The last bundles may be dequeued again, which changes nothing.
// It fails with Unavailable if the owner of the cursor takes too long, and may be repeated.
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
		case domain.KindOf(err) == domain.Conflict: // the standing was a stale read
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

// submitRequest stores a request, and returns the standing of the cursor once its owner has
// carried out the request. It fails with Conflict if before was a stale read.
func (s *Service) submitRequest(ctx context.Context, consumer domain.PartyID, before *domain.Standing, r domain.ReplayRequest) (domain.Standing, error) {
	id := consumer.Cursor()
	deadline := s.opts.After(s.opts.FetchTimeout)
	r.ID = s.opts.NewID()
	number, err := s.ports.Shards.AddReplay(ctx, id, before.Followed, r)
	if err == nil || domain.KindOf(err) == domain.Uncertain {
		s.opts.Changed(id) // the request may be stored, and its signal may be lost
	}
	if err != nil {
		return domain.Standing{}, err
	}
	for {
		settled := s.opts.Settled(id) // before the read, so that no settlement is missed
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

// findWaiting returns the positions of messages that wait for a consumer: retries, open
// deliveries and entries that were not taken, each with the highest priority first. It returns
// more than limit positions, because calls with some of these messages may be under way.
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
		if e := read[p.EntryID]; e != nil { // a missing entry has expired or is not visible yet
			b.add(e)
		}
	}
	end, err := s.ports.Streams.End(ctx, consumer.Stream())
	if err != nil {
		return nil, err
	}
	fresh := 0
	for _, last := range slices.Backward(end.Positions) { // the highest priority first
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

// findRetries returns up to limit positions of deliveries that have failed, the highest priority
// first.
func (s *Service) findRetries(ctx context.Context, consumer domain.PartyID, standing *domain.Standing, limit int) ([]domain.Position, error) {
	var all []domain.Position
	if standing.Retries == 0 {
		return nil, nil
	}
	for _, at := range slices.Backward(standing.At) { // the highest priority first
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

// boundedEntries collects positions of entries, up to the first entry that does not fit.
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

// readEntries reads the entries at positions. Expired entries are missing. If other entries are
// missing, because they are not visible to this node yet, isComplete is false.
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
			found, err := s.ports.Streams.Read(ctx, stream, at, int(last-at.Number)+1) // read the entries of one page
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

// readBundle reads the messages of a bundle.
func (s *Service) readBundle(ctx context.Context, consumer domain.PartyID, held *domain.HeldBundle, reserve Reserve) (*Bundle, error) {
	positions := held.Positions()
	read, isComplete, err := s.readEntries(ctx, consumer.Stream(), positions)
	if err != nil {
		return nil, err
	}
	if !isComplete { // otherwise the consumer would dequeue messages that it did not get
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
