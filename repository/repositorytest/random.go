package repositorytest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Random makes the same random calls to an implementation and to an oracle, package memory, and compares
// all results: the outcome of each event, the next bundle or run and its events, errors by kind, and the
// outbox. Sequence numbers may have different gaps, but must have the same order. Bundles may have
// different opening times, but must have the same order.
//
// The stores are opened once for each ordering and a few small drawer capacities. They must not inject
// faults: for example, if a store leaves a drawer before it is full, a run ends earlier than in the
// oracle.
func Random(t *testing.T, oracle, open func(t *testing.T, o Options) Stores) {
	type kind struct {
		capacity int
		ordering domain.Ordering
	}
	var kinds []kind
	oracles, tested := make(map[kind]Stores), make(map[kind]Stores)
	for _, capacity := range []int{1, 3, 10} {
		for _, ordering := range []domain.Ordering{domain.ByCabinet, domain.ByRecipient} {
			k := kind{capacity, ordering}
			kinds = append(kinds, k)
			one, _ := newClock()
			other, _ := newClock()
			oracles[k] = oracle(t, Options{DrawerCapacity: capacity, Ordering: ordering, Clock: one})
			tested[k] = open(t, Options{DrawerCapacity: capacity, Ordering: ordering, Clock: other})
		}
	}
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(kinds).Draw(t, "drawer capacity and ordering")
		m := newTwins(ctx, oracles[k], tested[k])
		t.Repeat(map[string]func(*rapid.T){
			"save":        m.saveBoth,
			"save again":  m.saveBoth, // a second name makes Saves twice as frequent
			"look":        func(t *rapid.T) { m.readNext(t, m.anyActor(t), anyGroups(t), anyMost(t)) },
			"peek":        m.peekBoth,
			"peek again":  m.peekBoth,
			"open late":   m.openLate,
			"acknowledge": m.acknowledgeAny,
			"answer":      m.answerAny,
			"mark":        m.markGone,
			"fail":        m.failContent,
			"notices":     func(t *rapid.T) { m.compareNotices(t, m.anyActor(t), rapid.IntRange(0, 3).Draw(t, "delivered")) },
			"queues":      func(t *rapid.T) { m.compareQueues(t, m.anyActor(t)) },
			"survey":      func(t *rapid.T) { m.compareSurvey(t, m.anyActor(t)) },
		})
		m.drainBoth(t)
	})
}

// twins are two stores that receive the same calls.
type twins struct {
	ctx            context.Context
	oracle, tested Stores

	actors    []domain.ActorID
	ids       []domain.EventID
	sequences map[domain.ActorID]map[domain.Sequence]domain.Sequence // number in the oracle ─▶ number in the tested store
	runs      []rangePair
	tried     []attempt
}

// An attempt is a successful or refused attempt to open a bundle.
type attempt struct {
	id  domain.BundleID
	run repository.Run // the run in the oracle
}

// A rangePair contains the runs that NextUnacknowledged returned in both stores.
type rangePair struct {
	oracle, tested repository.Run
	want, got      domain.Bundle // the first events or, if a bundle is open, all of them
}

func newTwins(ctx context.Context, oracle, tested Stores) *twins {
	m := &twins{ctx: ctx, oracle: oracle, tested: tested, sequences: make(map[domain.ActorID]map[domain.Sequence]domain.Sequence)}
	for range 2 {
		actor := NewActor()
		m.actors = append(m.actors, actor)
		m.sequences[actor] = make(map[domain.Sequence]domain.Sequence)
	}
	for range 120 {
		m.ids = append(m.ids, NewEventID())
	}
	return m
}

func (m *twins) anyActor(t *rapid.T) domain.ActorID {
	return m.actors[rapid.IntRange(0, len(m.actors)-1).Draw(t, "actor")]
}

// anyGroups draws one or more groups, sometimes one of them twice.
func anyGroups(t *rapid.T) []domain.Group {
	return rapid.SliceOfN(rapid.SampledFrom(AllGroups), 1, 3).Draw(t, "groups")
}

func anyMost(t *rapid.T) domain.Weight {
	return rapid.SampledFrom([]domain.Weight{domain.MaxBundleWeight, 5, 30_000}).Draw(t, "heaviest bundle")
}

// anyEvent draws an event with one of the ids, usually with the content that belongs to the id.
func (m *twins) anyEvent(t *rapid.T, to domain.ActorID) domain.Event {
	i := rapid.IntRange(0, len(m.ids)-1).Draw(t, "event")
	weights := []domain.Weight{1, 2, 7, 1, 20_000, 3, 1, 2, 1, 5, 1, domain.MaxBundleWeight, 1, 1, 60_000, 1, 1, 1<<63 - 1, 1}
	e := Event(to, WithWeight(weights[i%len(weights)]))
	e.ID = m.ids[i]
	if i%8 > 4 { // so that one cabinet has most of the events
		WithOrigin(AllOrigins[i%len(AllOrigins)])(&e)
	}
	if i%16 == 0 {
		WithContentType("other")(&e)
	}
	if i%23 == 0 {
		WithoutBundling(&e)
	}
	if i%3 == 0 {
		WithPayload(`{"id":"` + e.ID.String() + `"}`)(&e)
	}
	if rapid.IntRange(0, 19).Draw(t, "variant") == 0 {
		rapid.SampledFrom([]Change{WithWeight(5), WithDocumentType("X"), WithContentType("third"), WithPayload(`[]`)}).Draw(t, "change")(&e)
	}
	return e
}

func (m *twins) saveBoth(t *rapid.T) {
	to := m.anyActor(t)
	events := make([]domain.Event, rapid.SampledFrom([]int{1, 1, 3, 8, 40, 0}).Draw(t, "events"))
	for i := range events {
		events[i] = m.anyEvent(t, to)
	}
	if rapid.IntRange(0, 30).Draw(t, "foreign") == 30 {
		events = append(events, Event(NewActor()))
	}
	want, wantErr := m.oracle.Events.Save(m.ctx, to, events)
	got, gotErr := m.tested.Events.Save(m.ctx, to, events)
	requireSameKind(t, wantErr, gotErr)
	require.Equal(t, normalizeSaved(want), normalizeSaved(got))
}

// readNext calls NextUnacknowledged in both stores and compares the results. It returns the open
// bundle, or events for a new one with a weight of up to limit.
func (m *twins) readNext(t *rapid.T, actor domain.ActorID, groups []domain.Group, limit domain.Weight) (*domain.Bundle, *rangePair) {
	want, wantErr := m.oracle.Events.NextUnacknowledged(m.ctx, actor, groups)
	got, gotErr := m.tested.Events.NextUnacknowledged(m.ctx, actor, groups)
	requireSameKind(t, wantErr, gotErr)
	if wantErr != nil {
		return nil, nil
	}
	require.Equal(t, want.Waiting, got.Waiting)
	require.Equal(t, want.Run.Group(), got.Run.Group())
	require.Equal(t, want.Run.Cabinet(), got.Run.Cabinet())
	wantEvents, gotEvents := m.readBoth(t, want.Run, got.Run)
	require.Equal(t, want.Open != nil, got.Open != nil, "whether a bundle is open")
	if want.Open != nil {
		require.Equal(t, want.Run.BacklogAfter(want.Open.Count).Events, got.Run.BacklogAfter(got.Open.Count).Events, "events behind the open bundle")
		m.requireSameBundle(t, *want.Open, *got.Open)
		require.Len(t, gotEvents, got.Open.Count)
		m.runs = append(m.runs, rangePair{want.Run, got.Run, *want.Open, *got.Open}) // no bundle can be opened from the run of an open bundle
		return want.Open, nil
	}
	filler := domain.Filler{Max: limit}
	n := 0
	for n < len(wantEvents) && filler.Take(&wantEvents[n].Event, wantEvents[n].Sequence) {
		n++
	}
	var id domain.BundleID // set when the bundle is opened
	require.Equal(t, want.Run.BacklogAfter(n).Events, got.Run.BacklogAfter(n).Events, "events behind the first %d", n)
	l := rangePair{want.Run, got.Run, bundleOf(id, want.Run, wantEvents[:n]), bundleOf(id, got.Run, gotEvents[:n])}
	m.runs = append(m.runs, l)
	return nil, &l
}

// readBoth reads two runs and compares them, payloads included.
func (m *twins) readBoth(t *rapid.T, oracle, tested repository.Run) (want, got []repository.StoredEvent) {
	want, wantErr := ReadEvents(m.ctx, oracle)
	got, gotErr := ReadEvents(m.ctx, tested)
	require.NoError(t, errors.Join(wantErr, gotErr))
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Event, got[i].Event, "event %d", i)
		m.requireSequence(t, want[i].Recipient, want[i].Sequence, got[i].Sequence)
		require.Equal(t, want[i].PayloadAt.IsZero(), got[i].PayloadAt.IsZero(), "whether event %d has a payload", i)
		if !want[i].PayloadAt.IsZero() {
			wantPayload, wantErr := ReadPayload(m.ctx, m.oracle, want[i].PayloadAt)
			gotPayload, gotErr := ReadPayload(m.ctx, m.tested, got[i].PayloadAt)
			require.NoError(t, errors.Join(wantErr, gotErr))
			require.Equal(t, wantPayload, gotPayload)
		}
	}
	return want, got
}

// peekBoth opens a bundle if none is open.
func (m *twins) peekBoth(t *rapid.T) {
	if _, l := m.readNext(t, m.anyActor(t), anyGroups(t), anyMost(t)); l != nil {
		m.openBoth(t, *l)
	}
}

// openLate tries to open a bundle from an older run.
func (m *twins) openLate(t *rapid.T) {
	if len(m.runs) == 0 {
		return // there is no run yet
	}
	m.openBoth(t, rapid.SampledFrom(m.runs).Draw(t, "run"))
}

// openBoth opens a bundle, sometimes under an id that was used before. It does not repeat an id with the
// same run, because a store may accept or refuse that.
func (m *twins) openBoth(t *rapid.T, l rangePair) {
	id := NewBundleID()
	if len(m.tried) > 0 && rapid.IntRange(0, 5).Draw(t, "reuse") == 5 {
		if again := rapid.SampledFrom(m.tried).Draw(t, "id"); again.run != l.oracle {
			id = again.id
		}
	}
	m.tried = append(m.tried, attempt{id, l.oracle})
	l.want.ID, l.got.ID = id, id
	if rapid.IntRange(0, 2).Draw(t, "content") > 0 {
		OnRequest(&l.want)
		OnRequest(&l.got)
	}
	want, wantErr := m.oracle.Bundles.Add(m.ctx, l.want, l.oracle)
	got, gotErr := m.tested.Bundles.Add(m.ctx, l.got, l.tested)
	requireSameKind(t, wantErr, gotErr)
	if wantErr == nil {
		m.requireSameBundle(t, want, got)
	}
}

// anyBundle draws a bundle that may be open, refused, closed, foreign or unknown.
func (m *twins) anyBundle(t *rapid.T) domain.BundleID {
	if n := rapid.IntRange(0, len(m.tried)).Draw(t, "bundle"); n > 0 {
		return m.tried[len(m.tried)-n].id // the latest ids are the most likely
	}
	return NewBundleID()
}

func (m *twins) acknowledgeAny(t *rapid.T) { m.closeBundle(t, m.anyActor(t), m.anyBundle(t)) }

func (m *twins) answerAny(t *rapid.T) { m.answerBundle(t, m.anyActor(t), m.anyBundle(t)) }

// answerBundle stores content for a bundle, which may already have content.
func (m *twins) answerBundle(t *rapid.T, actor domain.ActorID, id domain.BundleID) {
	object := rapid.SampledFrom(madeObjects).Draw(t, "object")
	body := domain.Body{Length: int64(len(object)), Digest: domain.Digest{7: object[len(object)-1]}}
	want, wantErr := m.oracle.Answers.Answer(m.ctx, actor, id, object, body)
	got, gotErr := m.tested.Answers.Answer(m.ctx, actor, id, object, body)
	m.sameOutcome(t, want, got, wantErr, gotErr)
}

// madeObjects are objects with the content of bundles.
var madeObjects = []string{"made", "made/twice", "made/late"}

// markGone marks the content of a bundle as gone, and sometimes replaces the content.
func (m *twins) markGone(t *rapid.T) {
	actor, id, gone := m.anyActor(t), m.anyBundle(t), rapid.SampledFrom(madeObjects).Draw(t, "gone")
	want, wantErr := m.oracle.Answers.MarkGone(m.ctx, actor, id, gone)
	got, gotErr := m.tested.Answers.MarkGone(m.ctx, actor, id, gone)
	m.sameOutcome(t, want, got, wantErr, gotErr)
	if !rapid.Bool().Draw(t, "again") {
		return
	}
	gone, object := rapid.SampledFrom(madeObjects).Draw(t, "replaced"), rapid.SampledFrom(madeObjects).Draw(t, "object")
	want, wantErr = m.oracle.Answers.ReplaceAnswer(m.ctx, actor, id, gone, object, domain.Body{Length: 3})
	got, gotErr = m.tested.Answers.ReplaceAnswer(m.ctx, actor, id, gone, object, domain.Body{Length: 3})
	m.sameOutcome(t, want, got, wantErr, gotErr)
}

func (m *twins) failContent(t *rapid.T) {
	actor, id := m.anyActor(t), m.anyBundle(t)
	why := domain.ContentFailure{Reason: rapid.SampledFrom([]string{"no-answer", "internal"}).Draw(t, "reason"), Text: rapid.StringN(0, 20, 40).Draw(t, "text")}
	want, wantErr := m.oracle.Answers.Fail(m.ctx, actor, id, why)
	got, gotErr := m.tested.Answers.Fail(m.ctx, actor, id, why)
	m.sameOutcome(t, want, got, wantErr, gotErr)
}

func (m *twins) sameOutcome(t *rapid.T, want, got domain.Bundle, wantErr, gotErr error) {
	requireSameKind(t, wantErr, gotErr)
	if wantErr == nil {
		m.requireSameBundle(t, want, got)
	}
}

// compareNotices compares the notices of each group, and removes up to delivered notices from the front
// of each group. It returns the number of notices that remain.
func (m *twins) compareNotices(t *rapid.T, actor domain.ActorID, delivered int) (left int) {
	want, wantErr := m.oracle.Outbox.Notices(m.ctx, actor)
	got, gotErr := m.tested.Outbox.Notices(m.ctx, actor)
	require.NoError(t, errors.Join(wantErr, gotErr))
	require.Equal(t, len(want) > 0, len(got) > 0, "whether there are notices")
	for _, group := range AllGroups {
		want, got := ofGroup(group, want), ofGroup(group, got)
		require.LessOrEqual(t, len(got), len(want))
		left += len(want)
		for i := range got {
			if i > 0 {
				require.Greater(t, got[i].Number, got[i-1].Number)
			}
			mine, theirs := want[i], got[i]
			mine.Number, mine.Since, theirs.Number, theirs.Since = 0, time.Time{}, 0, time.Time{}
			require.Equal(t, mine, theirs, "notice %d of %s", i, group)
			if i < delivered {
				require.NoError(t, errors.Join(m.oracle.Outbox.Delivered(m.ctx, want[i]), m.tested.Outbox.Delivered(m.ctx, got[i])))
				left--
			}
		}
	}
	return left
}

func (m *twins) closeBundle(t *rapid.T, actor domain.ActorID, id domain.BundleID) {
	want, wantErr := m.oracle.Bundles.Acknowledge(m.ctx, actor, id)
	got, gotErr := m.tested.Bundles.Acknowledge(m.ctx, actor, id)
	requireSameKind(t, wantErr, gotErr)
	if wantErr == nil {
		m.requireSameBundle(t, want.Bundle, got.Bundle)
		require.Equal(t, want.Remaining.Events, got.Remaining.Events, "events behind the bundle that was acknowledged")
	}
}

// compareQueues compares the queues of each group.
func (m *twins) compareQueues(t *rapid.T, actor domain.ActorID) {
	want, wantErr := m.oracle.Events.Queues(m.ctx, actor)
	got, gotErr := m.tested.Events.Queues(m.ctx, actor)
	require.NoError(t, errors.Join(wantErr, gotErr))
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Group, got[i].Group)
		require.Equal(t, want[i].Waiting.Events, got[i].Waiting.Events, "events waiting in %s", want[i].Group)
		require.Equal(t, want[i].Open != nil, got[i].Open != nil, "whether a bundle is open in %s", want[i].Group)
		if want[i].Open != nil {
			m.requireSameBundle(t, *want[i].Open, *got[i].Open)
		}
	}
}

// compareSurvey compares the lines of a mailbox. Their times are from different clocks.
func (m *twins) compareSurvey(t *rapid.T, actor domain.ActorID) {
	if m.oracle.Survey == nil || m.tested.Survey == nil {
		return
	}
	want, wantIsThere := m.surveyLine(t, m.oracle, actor)
	got, gotIsThere := m.surveyLine(t, m.tested, actor)
	require.Equal(t, wantIsThere, gotIsThere, "whether there is a line")
	require.Equal(t, want.State(), got.State())
	require.Len(t, got.Groups, len(want.Groups))
	for i := range want.Groups {
		w, g := want.Groups[i], got.Groups[i]
		require.Equal(t, w.Waiting.Events, g.Waiting.Events, "events waiting in %s", w.Group)
		for what, moments := range map[string][2]time.Time{
			"oldest event": {w.Waiting.Oldest, g.Waiting.Oldest}, "opened": {w.Opened, g.Opened}, "failing since": {w.FailingSince, g.FailingSince},
			"last peek": {w.LastPeek, g.LastPeek}, "last dequeue": {w.LastDequeue, g.LastDequeue},
		} {
			require.Equal(t, moments[0].IsZero(), moments[1].IsZero(), what)
		}
		require.Equal(t, domain.MailboxGroup{Group: w.Group, Open: w.Open, Failures: w.Failures}, domain.MailboxGroup{Group: g.Group, Open: g.Open, Failures: g.Failures})
	}
}

// surveyLine returns the line of a mailbox in a survey of stores.
func (m *twins) surveyLine(t *rapid.T, stores Stores, actor domain.ActorID) (*domain.Mailbox, bool) {
	lines, err := stores.Survey.Surveyed(m.ctx)
	require.NoError(t, err)
	line, isThere := lines.Mailbox(actor)
	for s := range lines.Summaries() {
		if s.Recipient == actor {
			require.True(t, isThere)
			require.Equal(t, line.Summary().State, s.State)
			require.Equal(t, line.Waiting().Events, s.Waiting.Events)
		}
	}
	return &line, isThere
}

// drainBoth dequeues all remaining bundles of all actors.
func (m *twins) drainBoth(t *rapid.T) {
	for _, actor := range m.actors {
		for {
			open, l := m.readNext(t, actor, AllGroups, domain.MaxBundleWeight)
			if l != nil {
				m.openBoth(t, *l)
				continue // the bundle may have been refused because of its id
			}
			if open == nil {
				break
			}
			if open.IsUnanswered() {
				m.answerBundle(t, actor, open.ID)
			}
			m.closeBundle(t, actor, open.ID)
		}
		m.requireOrder(t, actor)
		for m.compareNotices(t, actor, 3) > 0 {
			continue
		}
	}
}

// requireSequence requires that an event has the same sequence number as before, in each of the two
// stores.
func (m *twins) requireSequence(t *rapid.T, actor domain.ActorID, want, got domain.Sequence) {
	known, ok := m.sequences[actor][want]
	if !ok {
		m.sequences[actor][want] = got
		return
	}
	require.Equal(t, known, got, "sequence number of the same event")
}

// requireOrder requires that the sequence numbers of both stores have the same order.
func (m *twins) requireOrder(t *rapid.T, actor domain.ActorID) {
	last := domain.Sequence(0)
	for _, want := range slices.Sorted(maps.Keys(m.sequences[actor])) {
		got := m.sequences[actor][want]
		require.Greater(t, got, last, "sequence number of the event that memory numbers %d", want)
		last = got
	}
}

func (m *twins) requireSameBundle(t *rapid.T, want, got domain.Bundle) {
	m.requireSequence(t, want.Cabinet.Recipient, want.First, got.First)
	m.requireSequence(t, want.Cabinet.Recipient, want.Last, got.Last)
	require.False(t, got.Opened.IsZero())
	got.First, got.Last, got.Opened = want.First, want.Last, want.Opened
	require.Equal(t, want, got)
}

// requireSameKind requires that two errors have the same kind.
func requireSameKind(t *rapid.T, want, got error) {
	meaning := func(err error) string {
		switch {
		case err == nil:
			return "no error"
		case errors.Is(err, domain.ErrNoData):
			return "no data"
		case errors.Is(err, repository.ErrBundleIDInUse):
			return "bundle id in use"
		case errors.Is(err, repository.ErrUnanswered):
			return "unanswered"
		}
		return domain.KindOf(err).String()
	}
	require.Equal(t, meaning(want), meaning(got), "want the meaning of %v, got %v", want, got)
}
