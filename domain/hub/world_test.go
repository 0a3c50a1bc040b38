package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A world contains a hub over an empty store, and one actor. Its methods fail the test on an error.
type world struct {
	testing.TB
	ctx   context.Context
	store *memory.Store
	hub   *hub.Hub
	actor domain.ActorID
}

func newWorld(t testing.TB, opts hub.Options) *world {
	store := memory.New(memory.Options{})
	return &world{t, t.Context(), store, hub.New(store, store, store, opts), rt.NewActor()}
}

// sendEvents ingests events, all of which must be new.
func (w *world) sendEvents(events ...domain.Event) {
	w.Helper()
	ingested, err := w.hub.Ingest(w.ctx, events)
	require.NoError(w, err)
	require.Equal(w, hub.IngestResult{Accepted: len(events)}, ingested)
}

// sendNew sends n new events to the actor and returns them.
func (w *world) sendNew(n int, changes ...rt.Change) []domain.Event {
	w.Helper()
	events := rt.Events(n, w.actor, changes...)
	w.sendEvents(events...)
	return events
}

// newRequest returns a request for the actor's next bundle in groups; no groups means all.
func (w *world) newRequest(groups ...domain.Group) hub.PeekRequest {
	return hub.PeekRequest{Actor: w.actor, Groups: groups}
}

// peekBundle returns the next bundle in groups; no groups means all.
func (w *world) peekBundle(groups ...domain.Group) *hub.PeekedBundle {
	w.Helper()
	peeked, err := w.hub.Peek(w.ctx, w.newRequest(groups...))
	require.NoError(w, err)
	return peeked
}

// requireEvents checks that a bundle contains exactly these events.
func (w *world) requireEvents(p *hub.PeekedBundle, want ...domain.Event) {
	w.Helper()
	require.Equal(w, idsOf(want), deliveredIDs(w.readManifest(p)))
	require.Len(w, want, p.Count)
}

// dequeueBundle confirms a bundle.
func (w *world) dequeueBundle(p *hub.PeekedBundle) {
	w.Helper()
	closed, err := w.hub.Dequeue(w.ctx, w.actor, p.ID)
	require.NoError(w, err)
	require.Equal(w, p.Bundle, closed.Bundle)
}

// requireNoData checks that no events wait in groups; no groups means all.
func (w *world) requireNoData(groups ...domain.Group) {
	w.Helper()
	_, err := w.hub.Peek(w.ctx, w.newRequest(groups...))
	require.ErrorIs(w, err, domain.ErrNoData)
}

// writeBody writes the whole body of a bundle to a writer.
func writeBody(ctx context.Context, p *hub.PeekedBundle, to io.Writer) error {
	body, err := p.Open(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, body)
	return errors.Join(err, body.Close())
}

// body returns the whole body of a bundle.
func (w *world) body(p *hub.PeekedBundle) string {
	w.Helper()
	var b bytes.Buffer
	require.NoError(w, writeBody(w.ctx, p, &b))
	return b.String()
}

// A manifestLine is the JSON of an event in a manifest.
type manifestLine struct {
	ID, Recipient, Origin, ContentType, DocumentType string
	SupportsBundling                                 bool
	Weight, Sequence                                 int64
	Payload                                          json.RawMessage
}

// readManifest returns the events in the body of a manifest.
func (w *world) readManifest(p *hub.PeekedBundle) []manifestLine {
	w.Helper()
	var lines []manifestLine
	require.NoError(w, json.Unmarshal([]byte(w.body(p)), &lines))
	return lines
}

func deliveredIDs(lines []manifestLine) []string {
	ids := make([]string, len(lines))
	for i := range lines {
		ids[i] = lines[i].ID
	}
	return ids
}

func idsOf(events []domain.Event) []string {
	ids := make([]string, len(events))
	for i := range events {
		ids[i] = events[i].ID.String()
	}
	return ids
}

// A replacedStore is a store in which functions replace some methods. If a function is nil, the store's own method is
// called.
type replacedStore struct {
	*memory.Store
	save func(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error)
	next func(ctx context.Context, actor domain.ActorID, groups []domain.Group) (repository.Next, error)
	add  func(ctx context.Context, b domain.Bundle, run repository.Run) (domain.Bundle, error)
	open func(ctx context.Context, s repository.Section) (io.ReadCloser, error)
}

// replaceCalls puts m between the hub and the store.
func (w *world) replaceCalls(m replacedStore, opts hub.Options) {
	m.Store = w.store
	w.hub = hub.New(&m, &m, &m, opts)
}

func (m *replacedStore) Save(ctx context.Context, to domain.ActorID, events []domain.Event) (repository.Saved, error) {
	if m.save != nil {
		return m.save(ctx, to, events)
	}
	return m.Store.Save(ctx, to, events)
}

func (m *replacedStore) NextUnacknowledged(ctx context.Context, actor domain.ActorID, groups []domain.Group) (repository.Next, error) {
	if m.next != nil {
		return m.next(ctx, actor, groups)
	}
	return m.Store.NextUnacknowledged(ctx, actor, groups)
}

func (m *replacedStore) Add(ctx context.Context, b domain.Bundle, run repository.Run) (domain.Bundle, error) {
	if m.add != nil {
		return m.add(ctx, b, run)
	}
	return m.Store.Add(ctx, b, run)
}

func (m *replacedStore) Open(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
	if m.open != nil {
		return m.open(ctx, s)
	}
	return m.Store.Open(ctx, s)
}

// A brokenRun yields some events of a run, and then an error.
type brokenRun struct {
	repository.Run
	after int
	err   error
}

func (r brokenRun) Events(ctx context.Context) iter.Seq2[repository.StoredEvent, error] {
	return func(yield func(repository.StoredEvent, error) bool) {
		left := r.after
		for e, err := range r.Run.Events(ctx) {
			if left == 0 {
				yield(repository.StoredEvent{}, r.err)
				return
			}
			left--
			if !yield(e, err) {
				return
			}
		}
	}
}

// kinds are the error kinds that tests inject.
var kinds = []domain.Kind{
	domain.Unknown, domain.Invalid, domain.NotFound, domain.Conflict,
	domain.Busy, domain.Uncertain, domain.Unavailable, domain.Damaged,
}

// kindsExcept returns all kinds except the given ones.
func kindsExcept(but ...domain.Kind) []domain.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k domain.Kind) bool { return slices.Contains(but, k) })
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
