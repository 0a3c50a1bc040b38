package console_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/console"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
	"github.com/messagehub/messagehub/domain/inspect"
	"github.com/messagehub/messagehub/domain/journal"
	"github.com/messagehub/messagehub/domain/ledger"
	"github.com/messagehub/messagehub/domain/objecttest"
	"github.com/messagehub/messagehub/domain/receiverlist"
	"github.com/messagehub/messagehub/domain/replay"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
)

// Secrets that no page may contain.
const (
	secretQuery  = "token-in-the-query"
	secretHeader = "value-of-a-header"
	secretField  = "value-of-a-form-field"
	secretKey    = "signing-key-of-calls"
	secretToken  = "token-of-the-consumer"
	secretBody   = "payload-of-a-message"
)

// oddName breaks or reorders a page that does not escape and isolate it.
const oddName = "a\"b'<script>alert(1)</script>\u202eevil"

// systems contains in-memory stores for everything that a hub stores except the mailboxes, and the
// services that use these stores. Nothing sends calls to the receivers; tests store the results of
// calls instead.
type systems struct {
	t             *testing.T
	clock         func() time.Time
	definitions   *memory.Definitions
	streams       *memory.Streams
	cursors       *memory.Cursors
	parties       *memory.Parties
	subscriptions *subscribe.Service
	replays       *replay.Service
	broker        *broker.Service
	watches       *watch.Service
	rows          *memory.Objects
	objects       *ledger.Service

	subscription domain.SubscriptionID // subscription of actor, with a dead letter, a retry and a delivery
	watch        domain.WatchID        // watch of actor
	consumer     domain.PartyID        // consumer with a dead letter
	message      string                // message of the consumer's dead letter
	object       string                // id of the row of an object
	crawl        domain.JobID          // a running job
}

func (s *systems) Receiver(context.Context, domain.CursorID, bool) (inspect.Receiver, error) {
	return inspect.Receiver{Policy: domain.DefaultPolicy()}, nil
}

func (s *systems) Test(context.Context, *inspect.Receiver, *domain.Message) (domain.Answer, []byte) {
	return domain.Answer{}, nil
}

// newSystems returns systems with an object, a job, and a receiver of each kind. Each receiver has
// failed calls.
func newSystems(t *testing.T, clock func() time.Time) *systems {
	t.Helper()
	s := &systems{t: t, clock: clock, definitions: memory.NewDefinitions(), streams: memory.NewStreams(repository.MessageRetention, clock), cursors: memory.NewCursors(clock), parties: memory.NewParties(), rows: memory.NewObjects()}
	keys, err := subscribe.NewKeyring(subscribe.NewKey())
	require.NoError(t, err)
	s.subscriptions = subscribe.New(subscribe.Ports{Definitions: s.definitions, Streams: s.streams, Cursors: s.cursors, Dequeues: memory.New(memory.Options{})}, keys, subscribe.Options{Clock: clock})
	s.replays = replay.New(replay.Ports{Definitions: s.definitions, Streams: s.streams, Cursors: s.cursors, Shards: s.cursors}, replay.Options{})
	s.broker = broker.New(broker.Ports{Parties: s.parties, Streams: s.streams, Cursors: s.cursors, Shards: s.cursors}, keys, broker.Options{Clock: clock})
	resources := memory.NewResources(clock)
	base, err := domain.ParseResourceBase("https://hub.example.org")
	require.NoError(t, err)
	s.watches = watch.New(watch.Ports{
		Watches: memory.NewWatches(s.cursors), Resources: resources, Changes: resources, Cursors: s.cursors, Streams: s.streams, Bundles: memory.New(memory.Options{}),
	}, watch.Options{Base: base, Clock: clock})
	s.objects = ledger.New(ledger.Ports{Objects: s.rows, Jobs: memory.NewJobs(), Source: memory.NewSource("bucket")}, ledger.Options{Clock: clock})
	s.addSubscription()
	s.addWatch()
	s.addConsumer()
	s.addObject("bucket", oddName, "[C@C1] [D@D1] [C@C2]")
	job, err := s.objects.StartCrawl(t.Context(), "bucket", "")
	require.NoError(t, err)
	s.crawl = job.ID
	return s
}

// options adds the use cases of the systems to the options of a console.
func (s *systems) options(o *console.Options, records repository.DeadLetterActions) {
	o.Receivers = receiverlist.New(receiverlist.Ports{Definitions: s.definitions, Cursors: s.cursors, Shards: s.cursors, Streams: s.streams, Parties: s.parties}, s.clock)
	o.Subscriptions, o.Replays, o.Broker, o.Watches, o.Objects = s.subscriptions, s.replays, s.broker, s.watches, s.objects
	o.Deliveries = inspect.New(inspect.Ports{Definitions: s.definitions, Cursors: s.cursors, Streams: s.streams, Receivers: s, Caller: s}, inspect.Options{Clock: s.clock})
	o.Journal = journal.New(records, nil)
}

// samples returns a replacer that replaces path parameters with sample values.
func (s *systems) samples() *strings.Replacer {
	return strings.NewReplacer(
		"{subscription}", s.subscription.String(), "{delivery}", s.subscription.String()+".0.0", "{watch}", s.watch.String(),
		"{channel}", s.consumer.Channel().String(), "{consumer}", s.consumer.String(), "{message}", s.message,
		"{object}", s.object, "{kind}", "crawl", "{job}", s.crawl.UUID(),
	)
}

func (s *systems) addSubscription() {
	secret := secretKey
	created, err := s.subscriptions.Create(s.t.Context(), subscribe.Draft{
		Subscription: domain.Subscription{
			Owner: parseActor(s.t, actor), Topic: "orders", CallbackURL: "https://receiver.example.org/hook?key=" + secretQuery, Encoding: domain.FormEncoding,
			FormFields: map[string]string{"field": secretField},
		},
		Secret: &secret, Headers: map[string]string{"X-Key": secretHeader},
	})
	require.NoError(s.t, err)
	s.subscription = created.ID
	topic, err := domain.ParseTopic("orders")
	require.NoError(s.t, err)
	messages := make([]domain.Message, 4)
	for i := range messages {
		messages[i] = domain.Message{Payload: []byte(secretBody), Attributes: map[string]string{"id": fmt.Sprint(oddName, i), "type": "made", "source": "/s"}}
	}
	_, err = s.streams.Append(s.t.Context(), topic, messages)
	require.NoError(s.t, err)
	s.call(s.subscription.Cursor(), 1, domain.Answer{Status: 500, Error: "the receiver failed (500)"})
	s.call(s.subscription.Cursor(), 10, domain.Answer{Status: 200}, domain.Answer{Status: 503, Error: "the receiver " + oddName})
}

func (s *systems) addWatch() {
	created, err := s.watches.Create(s.t.Context(), parseActor(s.t, actor), watch.Draft{
		Resource: "https://hub.example.org/v1/resources/prices", CallbackURL: "https://watcher.example.org/hook?key=" + secretQuery, MayBeAbsent: true,
	})
	require.NoError(s.t, err)
	s.watch = created
}

func (s *systems) addConsumer() {
	ctx, admin, token := s.t.Context(), &broker.Credentials{IsAdmin: true}, secretToken
	put := func(list domain.PartyList, name, callback string) domain.PartyID {
		id, err := list.Parse(name)
		require.NoError(s.t, err)
		_, _, err = s.broker.PutParty(ctx, admin, id, broker.Draft{Label: oddName[:20], Token: &token, CallbackURL: callback}, broker.Condition{})
		require.NoError(s.t, err)
		return id
	}
	put(domain.Producers, "maker", "")
	channel := put(domain.Channels, "prices", "")
	s.consumer = put(channel.Consumers(), "shop", "https://shop.example.org/hook?key="+secretQuery)
	for range 2 {
		_, _, err := s.broker.Broadcast(ctx, &broker.Credentials{ChannelToken: token, ProducerID: "maker", ProducerToken: token}, channel, &broker.Broadcast{ContentType: "text/plain", Payload: []byte(secretBody)})
		require.NoError(s.t, err)
	}
	s.message = "m0.0"
	s.call(s.consumer.Cursor(), 1, domain.Answer{Status: 410, Error: "the receiver failed (410)"})
}

func (s *systems) addObject(bucket, key, script string) {
	name, err := domain.ParseObjectName(bucket, key)
	require.NoError(s.t, err)
	for _, call := range objecttest.Calls(script) {
		for _, e := range call {
			e.Attributes = `{"secret":"` + secretBody + `"}`
			_, err := s.rows.Ingest(s.t.Context(), []repository.ObjectReport{{Name: name, ObjectEvent: e}})
			require.NoError(s.t, err)
		}
	}
	s.object = ledger.RowID{Name: name}.String()
}

// call stores the results of calls of a cursor, as a node does after the calls. Each of the answers is
// the result of one call. attempts is the maximum number of attempts of a delivery.
func (s *systems) call(id domain.CursorID, attempts int, answers ...domain.Answer) {
	policy := domain.QueuePolicy(slices.Repeat([]time.Duration{24 * time.Hour}, attempts), attempts)
	c, version, err := s.cursors.Load(s.t.Context(), id, domain.Owner{Incarnation: "node", Limit: 8, Policy: policy}, s.clock)
	require.NoError(s.t, err)
	for _, a := range answers {
		c.Take(c.Position(0), true)
		call, ok := c.Next(s.clock())
		require.True(s.t, ok)
		c.Begin(call)
		a.Began, a.Took = s.clock(), 1500*time.Microsecond
		c.Settle(domain.Outcome{Entry: call.EntryID, Published: s.clock(), Answer: a})
	}
	_, err = s.cursors.Settle(s.t.Context(), id, version, c.Settlement())
	require.NoError(s.t, err)
}
