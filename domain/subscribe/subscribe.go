package subscribe

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/filter"
	"github.com/messagehub/messagehub/repository"
)

// ErrLimit reports that an owner already has the maximum number of subscriptions.
var ErrLimit = repository.ErrSubscriptionLimit

// MaxSecret is the maximum length of a secret, in bytes.
const MaxSecret = 256

// Ports contains the stores that a Service uses.
type Ports struct {
	Definitions repository.Definitions
	Streams     repository.Streams
	Cursors     repository.Cursors
	Dequeues    repository.DequeueRequests
}

// Options configures a Service. The zero value is valid.
type Options struct {
	HasObjects bool // whether the hub publishes to [domain.ObjectsTopic]
	// CheckURL returns an Invalid error if the hub must not call a URL. The error begins with the
	// JSON pointer of the URL. Default: the hub may call any URL.
	CheckURL func(ctx context.Context, url string) error
	// CheckSecret returns an Invalid error if calls cannot be signed with a secret. The error does
	// not contain the secret. Default: any secret is accepted.
	CheckSecret func(secret string) error
	// CheckHeaders returns an Invalid error if calls must not contain the headers. The error begins
	// with the JSON pointer of a header, and does not contain its value. secret is the secret that
	// signs the calls, or "" if they are not signed. Default: calls may contain any headers.
	CheckHeaders func(headers map[string]string, secret string) error
	// Created is called after a subscription's cursor was created. Changed is called after a
	// subscription was replaced, paused, resumed or deleted. Default: no call.
	Created func(domain.CursorID, domain.StreamName)
	Changed func(domain.CursorID)
	Grace   time.Duration    // time after a rotation during which calls are also signed with the previous secret
	Clock   func() time.Time // default time.Now
	NewID   func() domain.SubscriptionID
}

// A Service manages subscriptions. It is safe for concurrent use.
type Service struct {
	ports Ports
	keys  *Keyring
	opts  Options
}

// New returns a Service that encrypts secrets with keys. If keys is nil, the Service refuses
// secrets.
func New(ports Ports, keys *Keyring, opts Options) *Service {
	if opts.CheckURL == nil {
		opts.CheckURL = func(context.Context, string) error { return nil }
	}
	if opts.CheckSecret == nil {
		opts.CheckSecret = func(string) error { return nil }
	}
	if opts.CheckHeaders == nil {
		opts.CheckHeaders = func(map[string]string, string) error { return nil }
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
	if opts.NewID == nil {
		opts.NewID = newID
	}
	return &Service{ports, keys, opts}
}

// newID returns a random UUID of version 4.
func newID() (id domain.SubscriptionID) {
	rand.Read(id[:])
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return id
}

// A Draft describes a subscription as its owner requests it.
type Draft struct {
	domain.Subscription
	Secret  *string           // nil: do not change the secret; "": no secret
	Headers map[string]string // headers of each call; nil: do not change the headers; empty: no headers

	IsOperator bool // the request was authorized by an operator's token
}

// A Subscription is the state of a subscription as its owner may read it, without the secret and
// the header values.
type Subscription struct {
	ID domain.SubscriptionID
	domain.Subscription
	HeaderNames []string // names of the headers in each call, in alphabetical order
	IsSigned    bool     // whether calls are signed with a secret
	IsPaused    bool
	Created     time.Time
	Version     string    // identifies the version of the subscription; each change by the owner creates a new version
	Delivery    *Delivery // state of the calls; set only by Get

	// PreviousUntil is the time until which calls are also signed with the previous secret. It is
	// zero if calls are signed with at most one secret.
	PreviousUntil time.Time
}

func viewDefinition(d *repository.Definition) *Subscription {
	return &Subscription{
		ID: d.ID, Subscription: d.Subscription, HeaderNames: d.HeaderNames, IsSigned: d.Secret != "", IsPaused: d.Paused, Created: d.Created,
		Version: string(d.Version), PreviousUntil: d.PreviousUntil,
	}
}

// checkDraft returns an Invalid error that begins with a JSON pointer if d is not valid.
func (s *Service) checkDraft(ctx context.Context, d *Draft) error {
	d.SetDefaults()
	if err := d.Check(); err != nil {
		return err
	}
	if d.Topic == domain.ObjectsTopic {
		switch {
		case !d.IsOperator:
			return domain.Errorf(domain.Invalid, "/topic: only operators may subscribe to the changes of objects")
		case !s.opts.HasObjects:
			return domain.Errorf(domain.Invalid, "/topic: this hub publishes no changes of objects; its operator can set objects.topic")
		}
	}
	if err := s.checkSecret(d.Secret); err != nil {
		return err
	}
	if err := s.checkHeaders(d.Headers, textOf(d.Secret)); err != nil {
		return err
	}
	if _, _, err := filter.CompileSubscription(&d.Subscription); err != nil {
		return err
	}
	return s.opts.CheckURL(ctx, d.CallbackURL)
}

func (s *Service) checkSecret(secret *string) error {
	const where = "/hmac_secret_key"
	switch {
	case secret == nil || *secret == "":
		return nil
	case len(*secret) > MaxSecret:
		return domain.Errorf(domain.Invalid, "%s: want at most %d bytes, got %d", where, MaxSecret, len(*secret))
	case s.keys == nil:
		return domain.Errorf(domain.Invalid, "%s: this hub has no key to seal secrets; its operator can set push.secret-key", where)
	}
	if err := s.opts.CheckSecret(*secret); err != nil {
		return domain.Errorf(domain.Invalid, "%s: %w", where, err)
	}
	return nil
}

// Create stores a subscription with a new id.
func (s *Service) Create(ctx context.Context, d Draft) (*Subscription, error) {
	stored, _, err := s.Put(ctx, s.opts.NewID(), d, Match{})
	return stored, err
}

// Put stores a subscription with an id that its owner has chosen, or replaces the subscription that
// has this id. created reports whether it is new. The call may be repeated. If the stored
// subscription equals the draft, Put succeeds without a write, whatever m is.
//
// Put fails with Conflict if the id belongs to another owner or to a deleted subscription, or if
// the subscription changes during the call. It fails with [ErrLimit] if the owner has too many
// subscriptions, and with [ErrChanged] if m does not permit the current version.
func (s *Service) Put(ctx context.Context, id domain.SubscriptionID, d Draft, m Match) (stored *Subscription, created bool, err error) {
	if err := s.checkDraft(ctx, &d); err != nil {
		return nil, false, err
	}
	wanted := &repository.Definition{ID: id, Subscription: d.Subscription, Created: s.opts.Clock().UTC().Truncate(time.Microsecond)}
	if d.Secret != nil && *d.Secret != "" {
		wanted.Secret = s.keys.Seal(id, d.Owner, *d.Secret)
	}
	s.sealHeaders(wanted, d.Headers)
	if err := s.checkSync(ctx, wanted); err != nil {
		return nil, false, err
	}
	found, created, err := s.createDefinition(ctx, wanted, &m)
	if err != nil {
		return nil, false, err
	}
	wasSync := found.IsSync
	if !created {
		found, err = s.replaceDefinition(ctx, found, wanted, &d, &m)
		s.notifyChange(id, err)
		if err != nil {
			return nil, false, err
		}
	}
	// After a crash before the following steps, the owner's dequeues may not be published, and
	// senders may not know that the subscription is sync. A repeated Put, or the next node that
	// serves the subscription, completes the steps.
	if err := s.newDequeues().Request(ctx, found); err != nil {
		return nil, false, err
	}
	if err := s.createCursor(ctx, found); err != nil {
		return nil, false, err
	}
	if err := s.listCursor(ctx, found, wasSync); err != nil {
		return nil, false, err
	}
	return viewDefinition(found), created, nil
}

// createDefinition returns the stored subscription with the id and owner of wanted. If there is
// none and m permits its creation, createDefinition stores wanted.
func (s *Service) createDefinition(ctx context.Context, wanted *repository.Definition, m *Match) (*repository.Definition, bool, error) {
	if !m.isSet() {
		return s.ports.Definitions.CreateSubscription(ctx, wanted)
	}
	found, err := s.findCurrent(ctx, wanted.Owner, wanted.ID)
	if domain.KindOf(err) == domain.NotFound {
		err = newChangedError()
	}
	return found, false, err
}

// replaceDefinition replaces found by wanted, unless they are equal. wanted is the definition that
// draft describes.
func (s *Service) replaceDefinition(ctx context.Context, found, wanted *repository.Definition, draft *Draft, m *Match) (*repository.Definition, error) {
	if found.Topic != wanted.Topic {
		return nil, domain.Errorf(domain.Invalid, "/topic: want %s: the topic of a subscription cannot be changed", found.Topic)
	}
	same, keepsSecret := found.IsEqual(&wanted.Subscription), false
	switch secret := draft.Secret; {
	case secret == nil:
		keepsSecret = true
	case *secret == "":
		same = same && found.Secret == ""
	case found.Secret == "":
		same = false
	default:
		now, err := s.keys.Open(found.ID, found.Owner, found.Secret)
		keepsSecret = err == nil && subtle.ConstantTimeCompare([]byte(now), []byte(*secret)) == 1
		same = same && keepsSecret
	}
	keepsHeaders := draft.Headers == nil || s.hasHeaders(found, draft.Headers)
	if same && keepsHeaders {
		return found, nil
	}
	if !m.canChange(found.Version) {
		return nil, newChangedError()
	}
	if keepsSecret {
		wanted.Secret, wanted.Previous, wanted.PreviousUntil, wanted.Rotation = found.Secret, found.Previous, found.PreviousUntil, found.Rotation
	}
	if keepsHeaders {
		wanted.Headers, wanted.HeaderNames = found.Headers, found.HeaderNames
	}
	if err := s.checkWithStored(wanted, draft); err != nil {
		return nil, err
	}
	wanted.Paused, wanted.Resumed, wanted.Created, wanted.Version = found.Paused, found.Resumed, found.Created, found.Version
	version, err := s.ports.Definitions.ReplaceSubscription(ctx, wanted)
	wanted.Version = version
	return wanted, m.changeError(err)
}

// createCursor creates a subscription's cursor at the end of its stream. It does nothing if the
// cursor exists.
func (s *Service) createCursor(ctx context.Context, d *repository.Definition) error {
	stream, err := d.Stream()
	if err != nil {
		return err
	}
	end, err := s.ports.Streams.CurrentEnd(ctx, stream)
	if err != nil {
		return err
	}
	err = s.ports.Cursors.Create(ctx, d.ID.Cursor(), domain.Standing{Stream: stream, Segment: end.Segment, At: end.Positions})
	if err != nil && domain.KindOf(err) != domain.Conflict {
		return err
	}
	s.opts.Created(d.ID.Cursor(), stream)
	return nil
}

// findOwned returns a subscription of owner. It fails with NotFound if the subscription does not
// exist or belongs to another owner. The result may be stale.
func (s *Service) findOwned(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID) (*repository.Definition, error) {
	d, err := s.ports.Definitions.Subscription(ctx, id)
	return checkOwner(d, err, owner, id)
}

// findCurrent is like findOwned, but its result is never stale. A change reads the subscription with
// findCurrent if it may succeed without a write: no write would then detect that the read was stale.
func (s *Service) findCurrent(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID) (*repository.Definition, error) {
	d, err := s.ports.Definitions.CurrentSubscription(ctx, id)
	return checkOwner(d, err, owner, id)
}

// checkOwner returns d and err, the result of a read, or a NotFound error if d belongs to another owner
// than owner.
func checkOwner(d *repository.Definition, err error, owner domain.ActorID, id domain.SubscriptionID) (*repository.Definition, error) {
	if domain.KindOf(err) == domain.NotFound || err == nil && d.Owner != owner {
		return nil, domain.Errorf(domain.NotFound, "there is no subscription %s", id)
	}
	return d, err
}

// Get returns a subscription of owner, and the state of its calls. It fails with NotFound if owner
// has no such subscription.
func (s *Service) Get(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID) (*Subscription, error) {
	d, err := s.findOwned(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	found := viewDefinition(d)
	found.Delivery, err = s.readDelivery(ctx, d)
	return found, err
}

// List returns the subscriptions of owner, ordered by id.
func (s *Service) List(ctx context.Context, owner domain.ActorID) ([]*Subscription, error) {
	found, err := s.ports.Definitions.Subscriptions(ctx, owner)
	all := make([]*Subscription, len(found))
	for i, d := range found {
		all[i] = viewDefinition(d)
	}
	return all, err
}

// SetPaused pauses or resumes a subscription of owner. Resuming also ends the pauses that follow
// failed calls: after 410 Gone, after Retry-After, and by the breaker. SetPaused fails with
// NotFound if owner has no such subscription, and with Conflict if the subscription changes during
// the call.
func (s *Service) SetPaused(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, isPaused bool) (*Subscription, error) {
	d, err := s.findCurrent(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	if d.Paused && isPaused {
		s.notifyChange(id, nil) // the earlier call may have crashed before it notified the engine
		return viewDefinition(d), nil
	}
	d.Paused = isPaused
	if !isPaused {
		d.Resumed++
	}
	d.Version, err = s.ports.Definitions.ReplaceSubscription(ctx, d)
	s.notifyChange(id, err)
	if err != nil {
		return nil, err
	}
	return viewDefinition(d), nil
}

// notifyChange calls Options.Changed, unless err, the result of a change, means that the change
// failed.
func (s *Service) notifyChange(id domain.SubscriptionID, err error) {
	if err == nil || domain.KindOf(err) == domain.Uncertain {
		s.opts.Changed(id.Cursor())
	}
}
