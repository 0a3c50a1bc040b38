package replay

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/filter"
	"github.com/messagehub/messagehub/repository"
)

// Ports are the stores that a Service uses.
type Ports struct {
	Definitions repository.Definitions
	Streams     repository.Streams
	Cursors     repository.Cursors
	Shards      repository.Shards
}

// Options of a Service. The zero value is valid.
type Options struct {
	Changed func(domain.CursorID) // called after a request was stored; default: no call
	NewID   func() string         // returns the id for a new request; default: 26 random letters and digits
}

// A Service is safe for concurrent use.
type Service struct {
	ports Ports
	opts  Options
}

// New returns a Service.
func New(ports Ports, opts Options) *Service {
	if opts.Changed == nil {
		opts.Changed = func(domain.CursorID) {}
	}
	if opts.NewID == nil {
		opts.NewID = rand.Text
	}
	return &Service{ports, opts}
}

// A subject is a subscription whose deliveries will be replayed.
type subject struct {
	definition *repository.Definition
	stream     domain.StreamName
	standing   domain.Standing
	filter     *filter.Expression // nil: the subscription has no filter
}

// findSubject returns a subscription of owner. It fails with NotFound if the subscription does not exist or
// belongs to another owner.
func (s *Service) findSubject(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID) (*subject, error) {
	d, err := s.ports.Definitions.Subscription(ctx, id)
	if domain.KindOf(err) == domain.NotFound || err == nil && d.Owner != owner {
		return nil, domain.Errorf(domain.NotFound, "there is no subscription %s", id)
	}
	if err != nil {
		return nil, err
	}
	found := &subject{definition: d}
	if found.stream, err = d.Stream(); err != nil {
		return nil, err
	}
	if found.filter, _, err = filter.CompileSubscription(&d.Subscription); err != nil {
		return nil, err
	}
	found.standing, err = s.ports.Cursors.Standing(ctx, id.Cursor())
	if domain.KindOf(err) == domain.NotFound {
		return nil, domain.Errorf(domain.Conflict, "the subscription is not complete: nothing was delivered; create it again with the same id")
	}
	return found, err
}

// checkReplayable returns a Conflict error if the topic of the subscription does not store its
// messages. In this case, only single dead letters can be replayed.
func (n *subject) checkReplayable() error {
	if _, isData := n.stream.DataActor(); isData {
		return domain.Errorf(domain.Conflict, "a subscription to %s is called with the newest state alone, so only its dead letters can be replayed, one by one", domain.DataTopic)
	}
	return nil
}

// matches reports whether an expression matches an entry. A nil expression matches every entry.
func matches(e *filter.Expression, entry *repository.Entry) bool {
	if e == nil {
		return true
	}
	passes, err := e.Matches(filter.MetadataOf(&entry.Message))
	return passes && err == nil
}

// addRequest stores a request to replay, and notifies the owner of the cursor.
func (s *Service) addRequest(ctx context.Context, n *subject, r domain.ReplayRequest) error {
	id := n.definition.ID.Cursor()
	_, err := s.ports.Shards.AddReplay(ctx, id, n.standing.Followed, r)
	switch domain.KindOf(err) {
	case domain.Conflict, domain.Uncertain: // the request may be stored: by this call, or by an earlier call that did not notify the owner of the cursor
		s.opts.Changed(id)
	default:
		if err == nil {
			s.opts.Changed(id)
		}
	}
	return err
}

// ReplayOne replays one delivery: a dead letter, or another ended delivery whose message is still stored.
// It fails with NotFound if owner has no such delivery, and with Conflict if the delivery is
// outstanding.
func (s *Service) ReplayOne(ctx context.Context, owner domain.ActorID, id domain.DeliveryID) error {
	n, err := s.findSubject(ctx, owner, id.Subscription)
	if err != nil {
		return err
	}
	wanted, err := s.findEnded(ctx, n, id)
	if err != nil {
		return err
	}
	return s.addRequest(ctx, n, domain.ReplayRequest{ID: s.opts.NewID(), Delivery: wanted})
}

// findEnded returns the replay of an ended delivery. It fails with Conflict if the delivery has not
// ended.
func (s *Service) findEnded(ctx context.Context, n *subject, id domain.DeliveryID) (*domain.ReplayDelivery, error) {
	for _, p := range n.standing.Open {
		if p.EntryID == id.Entry {
			return nil, domain.Errorf(domain.Conflict, "the delivery is called now, or in a moment")
		}
	}
	r, err := s.ports.Cursors.Retry(ctx, id.Subscription.Cursor(), id.Entry)
	switch {
	case err == nil && !r.Dead:
		return nil, domain.Errorf(domain.Conflict, "the delivery waits for its next attempt, which is due at %s", r.Due.UTC().Format(time.RFC3339))
	case err == nil:
		return &domain.ReplayDelivery{Position: r.Position, Published: r.Published}, nil
	case domain.KindOf(err) != domain.NotFound:
		return nil, err
	}
	if err := n.checkReplayable(); err != nil {
		return nil, err
	}
	entry, err := s.findEntry(ctx, n, id.Entry)
	if err != nil {
		return nil, err
	}
	switch {
	case entry == nil || entry.Published.Before(n.definition.Created) || !matches(n.filter, entry):
		return nil, domain.Errorf(domain.NotFound, "there is no delivery %s: its message has expired, was never published, or is none for the subscription", id)
	case id.Entry.Number >= n.standing.Position(id.Entry.Priority).Number:
		return nil, domain.Errorf(domain.Conflict, "the receiver was not called with this delivery yet: it waits for its turn")
	}
	return &domain.ReplayDelivery{Position: entry.Position, Published: entry.Published}, nil
}

// findEntry returns an entry of the stream, or nil if it is not stored.
func (s *Service) findEntry(ctx context.Context, n *subject, e domain.EntryID) (*repository.Entry, error) {
	at, err := s.ports.Streams.Seek(ctx, n.stream, e.Priority, func(number int64, _ time.Time) bool { return number < e.Number })
	if err != nil || at.Number > e.Number {
		return nil, err
	}
	at.EntryID = e // Read starts at at.Page, the page that Seek found, and finds the entry on this page or a later page
	found, err := s.ports.Streams.Read(ctx, n.stream, at, 1)
	if err != nil || len(found.Entries) == 0 || found.Entries[0].Position.EntryID != e {
		return nil, err
	}
	return &found.Entries[0], nil
}
