package find

import (
	"context"
	"slices"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/repository"
)

// Ports are the stores that a Service reads.
type Ports struct {
	Finder     repository.Finder
	Admin      repository.Admin
	Outbox     repository.Outbox
	Deliveries Explainer // nil if the hub calls no receivers

	// Streams and Definitions are nil if the hub calls no receivers.
	Streams     repository.Streams
	Definitions repository.Definitions
}

// An Explainer explains a delivery.
type Explainer interface {
	// Explain explains the state of a delivery, as [inspect.Service.Explain] does.
	Explain(ctx context.Context, reader inspect.Reader, id domain.DeliveryID) (*inspect.Explanation, error)
}

// Options configure a Service. The zero value is valid.
type Options struct {
	Units float64       // maximum request units that one answer may use to search all mailboxes; default 5,000
	Time  time.Duration // maximum time that one answer may take to search all mailboxes; default 8 s
	Limit int           // maximum number of events or bundles from each search; default 20
}

// A Service finds objects by id. It is safe for concurrent use.
type Service struct {
	ports Ports
	opts  Options
}

// New returns a Service that reads ports.
func New(ports Ports, opts Options) *Service {
	if opts.Units <= 0 {
		opts.Units = 5_000
	}
	if opts.Time <= 0 {
		opts.Time = 8 * time.Second
	}
	if opts.Limit <= 0 {
		opts.Limit = 20
	}
	return &Service{ports, opts}
}

// A Query describes what to search for.
type Query struct {
	ID     string
	Kind   Kind           // kind of the object; "" searches all kinds
	Actor  domain.ActorID // actor of the event or bundle; zero if unknown
	Origin domain.Origin  // origin of the event; zero if unknown

	// MessageID is the message id of an event that was published to a topic. If it is set, Find searches only for this
	// event and its deliveries to subscriptions of Actor.
	MessageID string
	Topic     string // "": domain.DefaultTopic

	After string // Answer.After of the last answer; "" begins the search
}

// Find searches for the objects that an id identifies. If none exist, it returns an answer without results;
// [Answer.IsUnknown] tells whether the search was complete. It fails with Invalid if the text cannot be an id, or if
// After comes from a different search.
func (s *Service) Find(ctx context.Context, q Query) (*Answer, error) {
	id, err := parseID(q.ID)
	if err != nil {
		return nil, err
	}
	if q.Kind != "" && !slices.Contains(Kinds, q.Kind) {
		return nil, domain.Errorf(domain.Invalid, "kind: want one of %v, got %q", Kinds, domain.Shorten(string(q.Kind)))
	}
	a := &Answer{ID: q.ID}
	if q.MessageID != "" || q.Kind == Published {
		return a, s.findPublished(ctx, a, &q)
	}
	var resumed searchToken
	if q.After != "" {
		if resumed, err = parseToken(q.After, q.ID); err != nil {
			return nil, err
		}
		a.Scope.Found, a.Scope.Mailboxes, a.Scope.Unread = resumed.Found, resumed.Mailboxes, resumed.Unread
	}
	// selectKind reports whether to search objects of kind k, and adds k to the scope
	selectKind := func(k Kind) bool {
		if !id.kinds[k] || q.Kind != "" && q.Kind != k {
			return false
		}
		a.Scope.Kinds = append(a.Scope.Kinds, k)
		return true
	}
	if selectKind(Bundle) && q.After == "" {
		if err := s.addBundles(ctx, a, id.bundle, q.Actor); err != nil {
			return nil, err
		}
	}
	if len(a.Results) > 0 && q.Kind == "" && q.Actor.IsZero() {
		a.note("This is the id of a bundle, so the mailboxes were not searched for an event with this id. A query with kind event searches them.")
	} else if selectKind(Event) {
		if err := s.addEvents(ctx, a, &id, &q, resumed); err != nil {
			return nil, err
		}
	}
	if selectKind(Trace) {
		if err := s.addEvents(ctx, a, &id, &q, resumed); err != nil {
			return nil, err
		}
		a.note("The spans of sampled traces are stored, while the hub records traces, as long as their events and bundles.")
	}
	if selectKind(Request) {
		if err := s.addBundles(ctx, a, id.bundle, id.actor); err != nil {
			return nil, err
		}
	}
	if selectKind(Delivery) {
		if err := s.addDelivery(ctx, a, id.delivery); err != nil {
			return nil, err
		}
	}
	a.noteMissing(&id, q.Kind, q.Actor)
	return a, nil
}

// findPublished searches for an event that was published to a topic.
func (s *Service) findPublished(ctx context.Context, a *Answer, q *Query) error {
	switch {
	case q.MessageID == "":
		return domain.Errorf(domain.Invalid, "source: missing; a published event is known by its source and its id")
	case q.Kind != "" && q.Kind != Published, !q.Origin.IsZero(), q.After != "":
		return domain.Errorf(domain.Invalid, "source: it is that of a published event, which has no other kind, no origin, and nothing to continue")
	}
	a.Scope.Kinds = []Kind{Published}
	return s.addPublished(ctx, a, q)
}

// noteMissing adds notes that tell why an answer has no results: the text is no known kind of id, or the data is not
// stored.
func (a *Answer) noteMissing(id *parsedID, kind Kind, actor domain.ActorID) {
	switch {
	case len(a.Scope.Kinds) == 0 && len(id.kinds) > 0:
		a.note("An id of this form does not name a " + string(kind) + ".")
	case len(a.Scope.Kinds) == 0:
		a.note("An event or a bundle has a UUID, a delivery has subscription.priority.number, a trace has 32 hexadecimal digits, and a request to a domain has the id of its bundle, an underscore and the actor. This id has no such form.")
		a.note("The ids of HTTP requests are not stored. The log has them as request_id.")
	case id.kinds[Event] && a.Scope.Found == 0 && a.After == "":
		if slices.Contains(a.Scope.Kinds, Bundle) && actor.IsZero() {
			a.note("The records of operators were not searched for a bundle with this id, because no actor was named.")
		}
		a.note("The RequestId of a request to a domain is new with each attempt and is not stored. The log has it. A query can search for the IdempotencyId of the request.")
	}
}
