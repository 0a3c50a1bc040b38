package explorer

import (
	"context"
	"errors"

	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/objects"
	"github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
	"github.com/messagehub/messagehub/repository"
)

// preparer is the name of the member that prepares a scenario.
const preparer byte = 0

var (
	document    = mustSucceed(domain.Kept("document"))
	watchBase   = mustSucceed(domain.ParseResourceBase("https://hub.example.org"))
	watchPolicy = domain.WatchPolicy(1, 1)
	// firstWatch is the id of the watch that the preparation creates.
	firstWatch = watchID(preparer)
)

// watchID returns the id of the watch that the member called name creates.
func watchID(name byte) domain.WatchID { return domain.NewWatchID(startTime, [10]byte{name}) }

// newMember returns a member with its own stores.
func (s *Scenario) newMember(ctx context.Context, db *client.Database, proc *partyProcess, options cosmos.Options, name byte) *Member {
	m := &Member{ctx: ctx, scenario: s, proc: proc, name: name, node: cosmos.New(db, s.newContent(), options)}
	m.objects = objects.New(db, s.objectOptions(options.Random, name == preparer))
	m.push = push.New(db, s.newContent(), push.Options{Clock: options.Clock, Random: options.Random})
	m.changes = watch.WithObjects(m.push, m.objects)
	m.relay = watch.NewRelay(m.changes, m.push, func(domain.StreamName, []domain.Message, []repository.Appended) {}, watch.RelayOptions{Clock: options.Clock, Random: options.Random})
	m.service = watch.New(watch.Ports{Watches: m.push, Resources: m.push, Changes: m.changes, Cursors: m.push, Streams: m.push, Bundles: m.node}, watch.Options{
		Base: watchBase, Clock: options.Clock, Random: func() [10]byte { return [10]byte{name} },
	})
	m.topic = m.newTopicRelay()
	return m
}

// watchedResource returns the resource that the scenario watches.
func (s *Scenario) watchedResource() domain.Resource {
	if s.Objects {
		return domain.ObjectResourceOf(objectName("key"))
	}
	return document
}

// reportKey returns a function that delivers events of the watched object.
func reportKey(script string) func(*Member) {
	return func(m *Member) {
		results, err := m.objects.Ingest(m.ctx, reportsOf("key", script))
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		m.noteSight(sight{what: "changed", err: err})
	}
}

// Put stores a version of the document.
func (m *Member) Put() {
	_, _, err := m.service.PutDocument(m.ctx, document, []byte{'0' + m.name}, watch.Condition{})
	m.noteSight(sight{what: "changed", err: err})
}

// Delete deletes the document.
func (m *Member) Delete() {
	m.noteSight(sight{what: "changed", err: m.service.DeleteDocument(m.ctx, document, watch.Condition{})})
}

// Publish publishes the changes of the resource.
func (m *Member) Publish() {
	m.noteSight(sight{what: "published", err: m.relay.Publish(m.ctx, domain.Change{Resource: m.scenario.watchedResource()})})
}

// Watch creates a watch of the resource.
func (m *Member) Watch() {
	id, err := m.service.Create(m.ctx, recipient, watch.Draft{Resource: watchBase.URI(m.scenario.watchedResource()), CallbackURL: "https://example.org", IsOperator: true})
	m.noteSight(sight{what: "watched", watch: id, err: err})
}

// Unwatch deletes the watch of the preparation.
func (m *Member) Unwatch() {
	m.noteSight(sight{what: "unwatched", watch: firstWatch, err: m.service.Delete(m.ctx, recipient, firstWatch)})
}

// Serve serves the watch of the preparation once, as the owner of the watch's cursor does: it delivers the entries of
// the stream. If the watch is deleted, Serve cancels the deliveries and retires the cursor instead.
func (m *Member) Serve() {
	m.noteSight(sight{what: "served", watch: firstWatch, err: m.serveCursor()})
}

func (m *Member) serveCursor() error {
	id := firstWatch.Cursor(recipient)
	_, err := m.service.WatchOf(m.ctx, id, false)
	isDeleted := domain.KindOf(err) == domain.NotFound
	if err != nil && !isDeleted {
		return err
	}
	clock := m.scenario.nodeOptions(0).Clock
	owner := domain.Owner{Incarnation: string('a' + rune(m.name)), Limit: domain.MaxConcurrency, Policy: watchPolicy}
	cursor, version, err := m.push.Load(m.ctx, id, owner, clock)
	if err != nil {
		return err
	}
	if isDeleted {
		cursor.Cancel(domain.MaxConcurrency)
	} else {
		err = m.deliverEntries(cursor)
	}
	if err == nil {
		version, err = m.push.Settle(m.ctx, id, version, cursor.Settlement())
	}
	if err == nil && isDeleted {
		err = m.push.Retire(m.ctx, id, version)
	}
	return err
}

// deliverEntries reads the entries after the position of the cursor, and settles them as delivered.
func (m *Member) deliverEntries(cursor *domain.Cursor) error {
	found, err := m.push.Read(m.ctx, m.scenario.watchedResource().Stream(), cursor.Position(0), 100)
	if err != nil {
		return err
	}
	published := make(map[domain.EntryID]repository.Entry)
	for _, e := range found.Entries {
		cursor.Take(e.Position, true)
		published[e.Position.EntryID] = e
	}
	for call, some := cursor.Next(startTime); some; call, some = cursor.Next(startTime) {
		cursor.Begin(call)
		cursor.Settle(domain.Outcome{Entry: call.EntryID, Attempts: call.Attempts, Published: published[call.EntryID].Published, Answer: domain.Answer{Status: 200}})
	}
	return nil
}
