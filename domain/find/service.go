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
	Deliveries Explainer // nil: the hub has no deliveries

	// The stores of streams and subscriptions; nil: the hub calls no receivers.
	Streams     repository.Streams
	Definitions repository.Definitions
}

// An Explainer explains a delivery.
type Explainer interface {
	// Explain explains the state of a delivery; see [inspect.Service.Explain].
	Explain(ctx context.Context, reader inspect.Reader, id domain.DeliveryID) (*inspect.Explanation, error)
}

// Options of a Service. The zero value is valid.
type Options struct {
	Units float64       // request units that an answer may spend on a search of all mailboxes; default 5,000
	Time  time.Duration // time that such a search may take; default 8 s
	Limit int           // limit for the results in an answer; default 20
}

// A Service is safe for concurrent use.
type Service struct {
	ports Ports
	opts  Options
}

// New returns a Service.
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

// A Query says what to search for.
type Query struct {
	ID     string
	Kind   Kind           // "": any kind
	Actor  domain.ActorID // actor of the event or the bundle; zero: not known
	Origin domain.Origin  // origin of the event; zero: not known

	// MessageID is the message id of an event that was published to a topic. If it is set, Find
	// searches only for this event, and Actor is the owner of the subscriptions whose
	// deliveries are returned.
	MessageID string
	Topic     string // "": domain.DefaultTopic

	After string // Answer.After of the previous answer; "": the first answer
}

// Find searches for an id. An answer without results is not an error; see [Answer.IsUnknown].
// It fails with Invalid if the text of the query cannot be an id, or if After comes from an
// answer to another query.
func (s *Service) Find(ctx context.Context, q Query) (*Answer, error) {
	id, err := parseID(q.ID)
	if err != nil {
		return nil, err
	}
	if q.Kind != "" && !slices.Contains(Kinds, q.Kind) {
		return nil, domain.Errorf(domain.Invalid, "kind: want one of %v, got %q", Kinds, domain.Clip(string(q.Kind)))
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
		a.Looked.Found, a.Looked.Mailboxes, a.Looked.Unread = resumed.Found, resumed.Mailboxes, resumed.Unread
	}
	looks := func(k Kind) bool {
		if !id.kinds[k] || q.Kind != "" && q.Kind != k {
			return false
		}
		a.Looked.Kinds = append(a.Looked.Kinds, k)
		return true
	}
	if looks(Bundle) && q.After == "" {
		if err := s.addBundles(ctx, a, id.bundle, q.Actor); err != nil {
			return nil, err
		}
	}
	if len(a.Results) > 0 && q.Kind == "" && q.Actor.IsZero() {
		a.note("It is the id of a bundle, so no mailbox was searched for an event with it. Ask with kind event to have them searched.")
	} else if looks(Event) {
		if err := s.addEvents(ctx, a, &id, &q, resumed); err != nil {
			return nil, err
		}
	}
	if looks(Trace) {
		if err := s.addEvents(ctx, a, &id, &q, resumed); err != nil {
			return nil, err
		}
		a.note("The spans of sampled traces are stored, while the hub records traces, as long as their events and bundles.")
	}
	if looks(Request) {
		if err := s.addBundles(ctx, a, id.bundle, id.actor); err != nil {
			return nil, err
		}
	}
	if looks(Delivery) {
		if err := s.addDelivery(ctx, a, id.delivery); err != nil {
			return nil, err
		}
	}
	a.noteMissing(&id, q.Kind, q.Actor)
	return a, nil
}

// findPublished searches for an event of a topic.
func (s *Service) findPublished(ctx context.Context, a *Answer, q *Query) error {
	switch {
	case q.MessageID == "":
		return domain.Errorf(domain.Invalid, "source: missing; a published event is known by its source and its id")
	case q.Kind != "" && q.Kind != Published, !q.Origin.IsZero(), q.After != "":
		return domain.Errorf(domain.Invalid, "source: it is that of a published event, which has no other kind, no origin, and nothing to continue")
	}
	a.Looked.Kinds = []Kind{Published}
	return s.addPublished(ctx, a, q)
}

// noteMissing adds a note about data that is not stored for ids of a kind.
func (a *Answer) noteMissing(id *parsedID, kind Kind, actor domain.ActorID) {
	switch {
	case len(a.Looked.Kinds) == 0 && len(id.kinds) > 0:
		a.note("An id of this form does not name a " + string(kind) + ".")
	case len(a.Looked.Kinds) == 0:
		a.note("An event or a bundle has a UUID, a delivery has subscription.priority.number, a trace has 32 hexadecimal digits, and a request to a domain has the id of its bundle, an underscore and the actor. This id has no such form.")
		a.note("The ids of HTTP requests are not stored: they are in the log, as request_id.")
	case id.kinds[Event] && a.Looked.Found == 0 && a.After == "":
		if slices.Contains(a.Looked.Kinds, Bundle) && actor.IsZero() {
			a.note("The records of operators were not searched for a bundle with this id, because no actor was named.")
		}
		a.note("The RequestId of a request to a domain is new with each attempt and is not stored. It is in the log; the IdempotencyId of the request can be looked for.")
	}
}
