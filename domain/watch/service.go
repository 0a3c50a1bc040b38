package watch

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Ports contains the stores that a Service uses.
type Ports struct {
	Watches   repository.Watches
	Resources repository.Resources
	Changes   repository.Changes
	Cursors   repository.Cursors
	Streams   repository.Streams
	Bundles   repository.BundleWatches
}

// Options configures a Service. The zero value is valid.
type Options struct {
	Base domain.ResourceBase // base URL of all resources
	// CheckURL returns an Invalid error if the hub must not call a URL. Default: the hub may call
	// any URL.
	CheckURL func(ctx context.Context, url string) error
	// Created is called after a watch's cursor was created. Changed is called after a watch was
	// replaced or deleted. Default: no call.
	Created func(domain.CursorID, domain.StreamName)
	Changed func(domain.CursorID)
	Clock   func() time.Time // default time.Now
	Random  func() [10]byte  // source of random bytes for the ids of watches; default: crypto/rand
}

// A Service manages watches and the documents of clients. It is safe for concurrent use.
type Service struct {
	ports Ports
	opts  Options
}

// New returns a Service.
func New(ports Ports, opts Options) *Service {
	if opts.CheckURL == nil {
		opts.CheckURL = func(context.Context, string) error { return nil }
	}
	if opts.Created == nil {
		opts.Created = func(domain.CursorID, domain.StreamName) {}
	}
	if opts.Changed == nil {
		opts.Changed = func(domain.CursorID) {}
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Random == nil {
		opts.Random = func() (b [10]byte) {
			rand.Read(b[:])
			return b
		}
	}
	return &Service{ports, opts}
}

// A Draft describes the watch that an owner requests.
type Draft struct {
	Resource    string // URI
	CallbackURL string
	MayBeAbsent bool // the watched document may not exist yet
	IsOperator  bool // the request was authorized by an operator's token
}

// ErrOperatorsOnly reports that an actor requested a watch on a party of the broker, or on an
// object in an object store. Only operators may read these resources. Its kind is Invalid.
var ErrOperatorsOnly = errors.New("only operators may watch producers, channels, consumers and objects of stores")

// A Watch is the state of a watch, as its owner may read it.
type Watch struct {
	ID          domain.WatchID
	Resource    string // URI
	CallbackURL string
	Created     time.Time
	Counters
}

// Counters counts the changes of a watched resource. Triggered is the sum of the other counters and
// the number of outstanding changes.
type Counters struct{ Triggered, Delivered, Errored, Cancelled int64 }

// Resource returns the resource with the given URI, for owner. It fails with Invalid if the URI
// cannot name a resource.
func (s *Service) Resource(owner domain.ActorID, uri string) (domain.Resource, error) {
	return s.opts.Base.Parse(uri, owner)
}

// checkDraft returns the resource that a draft names. If the draft is not valid, it returns an
// Invalid error that begins with a JSON pointer.
func (s *Service) checkDraft(ctx context.Context, owner domain.ActorID, d *Draft) (domain.Resource, error) {
	r, err := s.Resource(owner, d.Resource)
	if err != nil {
		return r, domain.Errorf(domain.Invalid, "/resource: %w", err)
	}
	if err := domain.CheckCallbackURL(d.CallbackURL); err != nil {
		return r, domain.Errorf(domain.Invalid, "/callback: %w", err)
	}
	if s.opts.Base.Contains(d.CallbackURL) {
		return r, domain.Errorf(domain.Invalid, "/callback: want a URL that is not one of this hub")
	}
	if err := s.opts.CheckURL(ctx, d.CallbackURL); err != nil {
		return r, domain.Errorf(domain.KindOf(err), "/callback: %w", err)
	}
	return r, nil
}

// Create creates a watch. It notifies the watch of each change of the resource that begins after
// Create has returned, but of no earlier change. Create fails with Invalid if the draft is not
// valid, and with NotFound if the resource does not exist. A repeated call creates a further watch.
func (s *Service) Create(ctx context.Context, owner domain.ActorID, d Draft) (domain.WatchID, error) {
	r, err := s.checkDraft(ctx, owner, &d)
	if err != nil {
		return domain.WatchID{}, err
	}
	isOfOperators := r.Kind() == domain.PartyResource || r.Kind() == domain.ObjectResource
	if isOfOperators && !d.IsOperator {
		return domain.WatchID{}, domain.Errorf(domain.Invalid, "%w", ErrOperatorsOnly)
	}
	version, err := s.markWatched(ctx, r, d.MayBeAbsent)
	if err != nil {
		return domain.WatchID{}, err
	}
	now := s.opts.Clock().UTC().Truncate(time.Microsecond)
	w := &repository.Watch{
		ID: domain.NewWatchID(now, s.opts.Random()), Owner: owner, Resource: r, CallbackURL: d.CallbackURL, After: version, Created: now,
	}
	if err := s.ports.Watches.CreateWatch(ctx, w); err != nil {
		return w.ID, err
	}
	return w.ID, s.createCursor(ctx, w)
}

// markWatched marks a resource as watched, so that its later changes are stored. It returns the
// version of the last change before the mark.
func (s *Service) markWatched(ctx context.Context, r domain.Resource, mayBeAbsent bool) (int64, error) {
	if mayBeAbsent && r.Kind() != domain.KeptResource {
		return 0, domain.Errorf(domain.Invalid, "absent: only a resource below /v1/resources may be absent")
	}
	if id, isBundle := r.Bundle(); isBundle {
		return s.ports.Bundles.WatchBundle(ctx, r.Actor(), id)
	}
	return s.ports.Changes.MarkWatched(ctx, r, mayBeAbsent)
}

// createCursor creates a watch's cursor. If the cursor exists, it only calls Options.Created.
func (s *Service) createCursor(ctx context.Context, w *repository.Watch) error {
	id, stream := w.ID.Cursor(w.Owner), w.Resource.Stream()
	at := domain.Position{EntryID: domain.EntryID{Number: w.After}}
	err := s.ports.Cursors.Create(ctx, id, domain.Standing{Stream: stream, At: []domain.Position{at}})
	if err != nil && domain.KindOf(err) != domain.Conflict {
		return err
	}
	s.opts.Created(id, stream)
	return nil
}

// Replace changes a watch's callback. It fails with Invalid if the draft names a different
// resource, and with NotFound if owner has no such watch.
func (s *Service) Replace(ctx context.Context, owner domain.ActorID, id domain.WatchID, d Draft) error {
	r, err := s.checkDraft(ctx, owner, &d)
	if err != nil {
		return err
	}
	for range maxReplacements {
		w, err := s.ports.Watches.Watch(ctx, owner, id)
		switch {
		case err != nil:
			return err
		case w.Resource != r:
			return domain.Errorf(domain.Invalid, "/resource: want %s: the resource of a watch cannot be changed", s.opts.Base.URI(w.Resource))
		}
		// If the stored callback is already the new one, an earlier call may have stored it, and
		// may have crashed before it recorded the change in the shard.
		isRepeated := w.CallbackURL == d.CallbackURL
		w.CallbackURL = d.CallbackURL
		err = s.ports.Watches.ReplaceWatch(ctx, w)
		if domain.KindOf(err) == domain.Conflict {
			continue // another request has replaced the watch, so read it again
		}
		if err == nil {
			s.opts.Changed(id.Cursor(owner))
		}
		if err == nil && isRepeated {
			err = s.createCursor(ctx, w)
		}
		return err
	}
	return domain.Errorf(domain.Busy, "watch %s is being changed by others", id)
}

// maxReplacements is the maximum number of attempts to change a watch or a document while other
// requests change it, too.
const maxReplacements = 8

// Delete deletes a watch and cancels its outstanding deliveries. It fails with NotFound if the
// owner has no such watch.
func (s *Service) Delete(ctx context.Context, owner domain.ActorID, id domain.WatchID) error {
	err := s.ports.Watches.DeleteWatch(ctx, owner, id)
	if err == nil || domain.KindOf(err) == domain.Uncertain {
		s.opts.Changed(id.Cursor(owner))
	}
	return err
}

// Get returns a watch of owner. It fails with NotFound if owner has no such watch.
func (s *Service) Get(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*Watch, error) {
	w, err := s.ports.Watches.Watch(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	return s.viewWatch(ctx, w)
}

// Attempts lists the last calls that were made for a watch.
type Attempts struct {
	Last []domain.Attempt // up to [domain.MaxRecent] attempts, in the order in which they ended
	Next time.Time        // time of the next attempt for a failed delivery; zero: no failed delivery waits
}

// maxRetries is the maximum number of retries that are read to find the time of the next attempt.
// If the cursor has more retries, the result is a lower bound that the cursor stores.
const maxRetries = 100

// Attempts returns the last calls for a watch, only for display. It fails with NotFound if owner
// has no such watch.
func (s *Service) Attempts(ctx context.Context, owner domain.ActorID, id domain.WatchID) (*Attempts, error) {
	w, err := s.ports.Watches.Watch(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	cursor := id.Cursor(owner)
	standing, err := s.ports.Cursors.Standing(ctx, cursor)
	if domain.KindOf(err) == domain.NotFound {
		return &Attempts{}, s.createCursor(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	a := &Attempts{Last: standing.Recent}
	if standing.Retries > maxRetries {
		a.Next = standing.Listed
		return a, nil
	}
	if standing.Retries == 0 {
		return a, nil
	}
	waiting, err := s.ports.Cursors.Retries(ctx, cursor, domain.EntryID{Number: -1}, maxRetries)
	for i := range waiting {
		if due := waiting[i].Due; a.Next.IsZero() || due.Before(a.Next) {
			a.Next = due
		}
	}
	return a, err
}

// List returns up to limit watches of owner, in the order of their creation. It skips the first
// offset watches.
func (s *Service) List(ctx context.Context, owner domain.ActorID, offset, limit int) ([]*Watch, error) {
	found, err := s.ports.Watches.Watches(ctx, owner, offset, limit)
	if err != nil {
		return nil, err
	}
	all := make([]*Watch, len(found))
	for i, w := range found {
		if all[i], err = s.viewWatch(ctx, w); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// viewWatch returns the state of w for its owner. If Create crashed before it created the cursor,
// viewWatch creates the cursor.
func (s *Service) viewWatch(ctx context.Context, w *repository.Watch) (*Watch, error) {
	v := &Watch{ID: w.ID, Resource: s.opts.Base.URI(w.Resource), CallbackURL: w.CallbackURL, Created: w.Created}
	standing, err := s.ports.Cursors.Standing(ctx, w.ID.Cursor(w.Owner))
	if domain.KindOf(err) == domain.NotFound {
		err = s.createCursor(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	end, err := s.ports.Streams.End(ctx, w.Resource.Stream())
	if err != nil {
		return nil, err
	}
	c := standing.Counters
	v.Counters = Counters{Triggered: c.Triggered, Delivered: c.Delivered, Errored: c.Errored + c.Expired, Cancelled: c.Cancelled}
	for _, p := range end.Positions {
		if p.Priority == 0 { // the cursor's counters do not include changes that it has not reached
			v.Triggered += max(p.Number-max(standing.Position(0).Number, w.After), 0)
		}
	}
	return v, nil
}

// WatchOf returns the watch to which a cursor belongs. It fails with NotFound if the watch does not
// exist. The result may be stale, unless isCurrent is set.
func (s *Service) WatchOf(ctx context.Context, cursor domain.CursorID, isCurrent bool) (*repository.Watch, error) {
	owner, id, isWatch := domain.WatchOf(cursor)
	if !isWatch {
		return nil, domain.Errorf(domain.NotFound, "cursor %s is not that of a watch", cursor)
	}
	if isCurrent {
		return s.ports.Watches.CurrentWatch(ctx, owner, id)
	}
	return s.ports.Watches.Watch(ctx, owner, id)
}
