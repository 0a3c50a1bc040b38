package receiverlist

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository"
)

// A Kind is a kind of receiver.
type Kind string

// The kinds of receivers.
const (
	Subscription Kind = "subscription"
	Watch        Kind = "watch"
	Consumer     Kind = "consumer"
)

// Stopped as a Query.State selects receivers in every state except active.
const Stopped = "stopped"

// States lists the states that a Query can name: Stopped, and states of [subscribe.Delivery].
var States = []string{
	Stopped, subscribe.DeliveryActive, subscribe.DeliveryFailing, subscribe.DeliveryHeld, subscribe.DeliveryPaused, subscribe.DeliveryGone,
}

// MaxPage is the maximum number of receivers on a page.
const MaxPage = 50

const (
	maxRead      = 300 // maximum number of receivers that are read for a page
	shardsAtOnce = 16
	readsAtOnce  = 32
)

// Ports are the stores that a Service reads.
type Ports struct {
	Definitions repository.Definitions
	Cursors     repository.Cursors
	Shards      repository.Shards
	Streams     repository.Streams
	Parties     repository.Parties
}

// A Service is safe for concurrent use.
type Service struct {
	ports Ports
	clock func() time.Time
}

// New returns a Service. A nil clock is time.Now.
func New(ports Ports, clock func() time.Time) *Service {
	if clock == nil {
		clock = time.Now
	}
	return &Service{ports, clock}
}

// A Query selects receivers.
type Query struct {
	Kind  Kind
	State string // one of States; "": any state
	After string // Page.Next of the previous page; "": the first page
}

// A Page has up to MaxPage receivers. A page that is not the last may have fewer receivers, or no
// receivers.
type Page struct {
	Receivers []Receiver
	Next      string // Query.After for the next page; "": this is the last page
}

// A Receiver is a receiver with the state of its calls.
type Receiver struct {
	Kind         Kind
	Owner        domain.ActorID        // owner of a subscription or a watch
	Subscription domain.SubscriptionID // id of a subscription
	Watch        domain.WatchID        // id of a watch
	Consumer     domain.PartyID        // id of a consumer
	Stream       domain.StreamName
	Host         string // host of the callback URL; "": unknown

	State       string    // a state of [subscribe.Delivery]
	Until       time.Time // no calls are made before this time; zero: no limit
	Failures    int       // consecutive failures
	FailedSince time.Time // time of the first of the consecutive failures; zero: unknown
	LastError   string    // error of the last call; "": the call succeeded
	Waiting     int       // number of deliveries that are being called or wait for a retry
	Behind      int64     // number of messages that the cursor has not reached
	Oldest      time.Time // publication time of the oldest message that the cursor has not reached; zero: unknown
	Dead        int64     // total number of deliveries that became dead letters

	// Fault is the error that prevented reading the other fields, or the reason why nothing is
	// delivered; "": no fault.
	Fault string
}

// A listPosition is a position in the list of receivers.
type listPosition struct {
	shard  int
	cursor string // last cursor of the shard that was read; "": no cursor of the shard was read
}

func (p listPosition) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(p.shard) + " " + p.cursor))
}

func parsePosition(text string) (listPosition, error) {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	number, cursor, hasCursor := strings.Cut(string(plain), " ")
	shard, parseErr := strconv.Atoi(number)
	if text == "" {
		return listPosition{}, nil
	}
	if err != nil || parseErr != nil || !hasCursor || shard < 0 || shard >= repository.ShardCount {
		return listPosition{}, domain.Errorf(domain.Invalid, "after: want the next of the previous page, got %q", domain.Shorten(text))
	}
	return listPosition{shard, cursor}, nil
}

// List returns a page of receivers without deleted subscriptions and watches. It fails with Invalid
// if the query is not valid.
func (s *Service) List(ctx context.Context, q Query) (Page, error) {
	at, err := parsePosition(q.After)
	if err != nil {
		return Page{}, err
	}
	if q.State != "" && !slices.Contains(States, q.State) {
		return Page{}, domain.Errorf(domain.Invalid, "state: want one of %v, got %q", States, domain.Shorten(q.State))
	}
	var page Page
	read := 0
	for at.shard < repository.ShardCount {
		shards, err := s.readShards(ctx, at.shard)
		if err != nil {
			return Page{}, err
		}
		for _, entries := range shards {
			entries = slices.DeleteFunc(entries, func(e repository.ShardEntry) bool {
				return e.Cursor.String() <= at.cursor || !q.hasKind(e.Cursor)
			})
			for chunk := range slices.Chunk(entries, readsAtOnce) {
				if read += len(chunk); read > maxRead {
					page.Next = at.String()
					return page, nil
				}
				found, err := s.readAll(ctx, chunk)
				if err != nil {
					return Page{}, err
				}
				for i := range found {
					if q.hasState(&found[i]) {
						if len(page.Receivers) == MaxPage {
							page.Next = at.String()
							return page, nil
						}
						page.Receivers = append(page.Receivers, found[i])
					}
					at.cursor = chunk[i].Cursor.String()
				}
			}
			at = listPosition{shard: at.shard + 1}
		}
	}
	return page, nil
}

// readShards returns the entries of up to shardsAtOnce shards, beginning with shard first. The
// entries of a shard are in the order of their cursors. Entries that cannot be read are left out;
// the command messagehub check reports them.
func (s *Service) readShards(ctx context.Context, first int) ([][]repository.ShardEntry, error) {
	shards := make([][]repository.ShardEntry, min(shardsAtOnce, repository.ShardCount-first))
	g, ctx := errgroup.WithContext(ctx)
	for i := range shards {
		g.Go(func() error {
			entries, _, err := s.ports.Shards.Cursors(ctx, first+i)
			if kind := domain.KindOf(err); err != nil && kind != domain.Damaged && kind != domain.NewerFormat {
				return err
			}
			slices.SortFunc(entries, func(a, b repository.ShardEntry) int { return cmp.Compare(a.Cursor.String(), b.Cursor.String()) })
			shards[i] = entries
			return nil
		})
	}
	return shards, g.Wait()
}

// hasKind reports whether a cursor belongs to a receiver of the queried kind.
func (q *Query) hasKind(cursor domain.CursorID) bool {
	r, ok := receiverOf(cursor)
	return ok && r.Kind == q.Kind
}

func (q *Query) hasState(r *Receiver) bool {
	switch {
	case r.State == subscribe.DeliveryClosed:
		return false
	case q.State == "":
		return true
	case q.State == Stopped:
		return r.State != subscribe.DeliveryActive
	}
	return r.State == q.State
}

// receiverOf returns the receiver that the id of a cursor names, and false if the cursor belongs
// to no receiver.
func receiverOf(cursor domain.CursorID) (Receiver, bool) {
	if owner, id, isWatch := domain.WatchOf(cursor); isWatch {
		return Receiver{Kind: Watch, Owner: owner, Watch: id}, true
	}
	if consumer, isConsumer := domain.ConsumerOf(cursor); isConsumer {
		return Receiver{Kind: Consumer, Consumer: consumer}, true
	}
	id, err := domain.SubscriptionOf(cursor)
	return Receiver{Kind: Subscription, Subscription: id}, err == nil
}

// readAll reads the receivers of entries. It fails only if ctx has ended: an error of one receiver
// is in Receiver.Fault.
func (s *Service) readAll(ctx context.Context, entries []repository.ShardEntry) ([]Receiver, error) {
	found := make([]Receiver, len(entries))
	var g errgroup.Group
	g.SetLimit(readsAtOnce)
	for i := range entries {
		g.Go(func() error {
			r, _ := receiverOf(entries[i].Cursor)
			r.Stream = entries[i].Stream
			if err := s.readReceiver(ctx, entries[i].Cursor, &r); err != nil {
				r.Fault = err.Error()
			}
			found[i] = r
			return nil
		})
	}
	_ = g.Wait() // the functions always return nil
	return found, ctx.Err()
}

// Consumers returns the receivers of consumers of the broker, in the order of ids.
func (s *Service) Consumers(ctx context.Context, ids []domain.PartyID) ([]Receiver, error) {
	entries := make([]repository.ShardEntry, len(ids))
	for i, id := range ids {
		entries[i] = repository.ShardEntry{Cursor: id.Cursor(), Stream: id.Stream()}
	}
	return s.readAll(ctx, entries)
}

// Subscription returns the receiver of a subscription. It fails with NotFound if the subscription
// belongs to another owner.
func (s *Service) Subscription(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID) (Receiver, error) {
	r := Receiver{Kind: Subscription, Subscription: id}
	err := s.readReceiver(ctx, id.Cursor(), &r)
	if err == nil && r.Owner != owner {
		return r, domain.Errorf(domain.NotFound, "actor %s has no subscription %s", owner, id)
	}
	return r, err
}

// SubscriptionsOf returns the receivers of an owner's subscriptions, in the order of their ids.
func (s *Service) SubscriptionsOf(ctx context.Context, owner domain.ActorID) ([]Receiver, error) {
	definitions, err := s.ports.Definitions.Subscriptions(ctx, owner)
	if err != nil {
		return nil, err
	}
	entries := make([]repository.ShardEntry, len(definitions))
	for i, d := range definitions {
		entries[i].Cursor = d.ID.Cursor()
	}
	return s.readAll(ctx, entries)
}

// readReceiver sets the fields of r from the stored data of a receiver.
func (s *Service) readReceiver(ctx context.Context, cursor domain.CursorID, r *Receiver) error {
	standing, err := s.ports.Cursors.Standing(ctx, cursor)
	if err != nil && domain.KindOf(err) != domain.NotFound {
		return err
	}
	hasCursor := err == nil
	definition := &repository.Definition{Resumed: standing.Resumed} // watches and consumers cannot be paused by their owners
	switch r.Kind {
	case Subscription:
		definition, err = s.ports.Definitions.Subscription(ctx, r.Subscription)
		if domain.KindOf(err) == domain.NotFound { // the subscription was deleted, and its cursor will be removed
			r.State = subscribe.DeliveryClosed
			return nil
		}
		if err != nil {
			return err
		}
		r.Owner, r.Host = definition.Owner, hostOf(definition.CallbackURL)
		if r.Stream, err = definition.Stream(); err != nil {
			return err
		}
	case Consumer:
		party, err := s.ports.Parties.Party(ctx, r.Consumer)
		if err != nil {
			return err
		}
		r.Host = hostOf(party.CallbackURL)
	case Watch:
	}
	d := subscribe.DeliveryOf(definition, &standing, s.clock())
	r.State, r.Until, r.Failures, r.Waiting, r.Dead = d.State, d.Until, d.Failures, d.Waiting, d.Counters.Errored
	if d.Failures > 0 {
		r.FailedSince = standing.FailedSince
	}
	if n := len(standing.Recent); n > 0 {
		r.LastError = standing.Recent[n-1].Error
	}
	if !hasCursor {
		return domain.Errorf(domain.NotFound, "nothing is delivered, because its cursor was not created; its owner has to create it again with the same id")
	}
	return s.readBehind(ctx, &standing, r)
}

// hostOf returns the host of a URL. It leaves out the path and the query, which may have secrets.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// readBehind counts the messages that the cursor has not reached, and reads the oldest such message.
func (s *Service) readBehind(ctx context.Context, standing *domain.Standing, r *Receiver) error {
	end, err := s.ports.Streams.End(ctx, r.Stream)
	if err != nil {
		return err
	}
	for _, p := range end.Positions {
		at := standing.Position(p.Priority)
		behind := p.Number - at.Number
		if behind <= 0 {
			continue
		}
		if _, isData := r.Stream.DataActor(); isData {
			behind = 1 // in a data stream, the newest entry represents all earlier entries
		}
		r.Behind += behind
		read, err := s.ports.Streams.Read(ctx, r.Stream, at, 1)
		if err != nil {
			return err
		}
		if len(read.Entries) > 0 {
			if published := read.Entries[0].Published; r.Oldest.IsZero() || published.Before(r.Oldest) {
				r.Oldest = published
			}
		}
	}
	return nil
}
