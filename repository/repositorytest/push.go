package repositorytest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// PushStores are the ports of the push side of one implementation.
type PushStores struct {
	Streams     repository.Streams
	Cursors     repository.Cursors
	Shards      repository.Shards
	Nodes       repository.Nodes
	Definitions repository.Definitions
	Parties     repository.Parties
	Watches     repository.Watches
	Resources   repository.Resources
	Changes     repository.Changes
	Content     repository.Content // contains large payloads of entries; nil if all payloads are in the entries
}

// PushOptions are the requirements of a case for the stores that it opens.
type PushOptions struct {
	Clock func() time.Time
}

// PushRetention is the retention of messages in the stores.
const PushRetention = 48 * time.Hour

type pushRule struct {
	name string
	test func(f *pushFixture)
}

// RunPush checks an implementation against the contracts of the ports of the push side.
func RunPush(t *testing.T, open func(t *testing.T, o PushOptions) PushStores) {
	for _, topic := range []struct {
		name  string
		rules []pushRule
	}{
		{"Stream", streamRules},
		{"Version", versionRules},
		{"Cursor", cursorRules},
		{"Retry", retryRules},
		{"Retirement", retireRules},
		{"Replay", replayRules},
		{"Pull", pullRules},
		{"Definition", definitionRules},
		{"Party", partyRules},
		{"Watch", watchRules},
		{"WatchPage", watchPageRules},
		{"Resource", resourceRules},
		{"Node", nodeRules},
	} {
		t.Run(topic.name, func(t *testing.T) {
			for _, r := range topic.rules {
				t.Run(r.name, func(t *testing.T) { r.test(newPushFixture(t, open)) })
			}
		})
	}
}

// A pushFixture is the environment of a case. Its methods fail the test if a call fails.
type pushFixture struct {
	*testing.T
	PushStores
	ctx    context.Context
	stream domain.StreamName
	id     domain.CursorID

	mu      sync.Mutex
	now     time.Time
	change  *domain.Change // the change that was observed last
	changes int            // number of changes that were observed
}

func newPushFixture(t *testing.T, open func(t *testing.T, o PushOptions) PushStores) *pushFixture {
	f := &pushFixture{T: t, ctx: t.Context(), now: time.Now().UTC().Truncate(time.Second)}
	f.PushStores = open(t, PushOptions{Clock: f.readClock})
	f.stream, f.id = NewStream(), NewCursorID()
	if f.Changes != nil {
		f.Changes.Observe(f.observeChange)
	}
	return f
}

func (f *pushFixture) readClock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *pushFixture) advanceClock(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// NewStream returns the name of a stream that no other test uses.
func NewStream() domain.StreamName {
	s, err := domain.ParseTopic(NewActor().String())
	if err != nil {
		panic(err)
	}
	return s
}

// NewCursorID returns the id of a cursor that no other test uses.
func NewCursorID() domain.CursorID {
	id, err := domain.ParseCursorID("s|" + NewActor().String())
	if err != nil {
		panic(err)
	}
	return id
}

// Messages returns n messages without ids.
func Messages(n int) []domain.Message {
	all := make([]domain.Message, n)
	for i := range all {
		all[i] = domain.Message{
			Attributes:  map[string]string{"type": "made", "n": fmt.Sprint(i)},
			ContentType: "application/json", Payload: fmt.Appendf(nil, `{"n":%d}`, i),
		}
	}
	return all
}

func (f *pushFixture) appendMessages(messages ...domain.Message) []repository.Appended {
	f.Helper()
	appended, err := f.Streams.Append(f.ctx, f.stream, messages)
	require.NoError(f, err)
	require.Len(f, appended, len(messages))
	return appended
}

// readAll returns the entry at from and all later entries of its priority, with their payloads.
func (f *pushFixture) readAll(from domain.Position) []repository.Entry {
	f.Helper()
	all, err := ReadAll(f.ctx, f.PushStores, f.stream, from)
	require.NoError(f, err)
	return all
}

// ReadAll returns the entry at from and all later entries of its priority, with their payloads. It fails
// if there is a gap, or if an entry does not have the position at which it was read.
func ReadAll(ctx context.Context, s PushStores, stream domain.StreamName, from domain.Position) ([]repository.Entry, error) {
	var all []repository.Entry
	for {
		found, err := s.Streams.Read(ctx, stream, from, 7)
		if err != nil {
			return nil, err
		}
		if len(found.Entries) == 0 {
			return all, nil
		}
		from = found.Start
		for _, e := range found.Entries {
			if e.Position.EntryID != from.EntryID || e.Priority != from.Priority {
				return nil, fmt.Errorf("entry %s was read at %s", e.Position, from)
			}
			if !e.PayloadAt.IsZero() {
				r, err := s.Content.Open(ctx, e.PayloadAt)
				if err != nil {
					return nil, err
				}
				if e.Payload, err = io.ReadAll(r); err != nil {
					return nil, err
				}
				r.Close()
				if repository.SumOf(e.Payload) != e.PayloadAt.Sum {
					return nil, fmt.Errorf("the payload of %s is not what was stored", e.Position)
				}
			}
			all = append(all, e)
			from = e.Position.Next()
		}
	}
}

// requireMessages requires that the entries are the messages, in order.
func (f *pushFixture) requireMessages(messages []domain.Message, entries []repository.Entry) {
	f.Helper()
	require.Len(f, entries, len(messages))
	for i, m := range messages {
		got := entries[i].Message
		require.Equal(f, m.ID, got.ID)
		require.Equal(f, m.Digest(), got.Digest(), "message %d", i)
	}
}

var streamRules = []pushRule{
	{"AppendedMessagesAreReadInOrder", func(f *pushFixture) {
		messages := Messages(20)
		for i := 0; i < len(messages); {
			n := min(1+i%3, len(messages)-i)
			appended := f.appendMessages(messages[i : i+n]...)
			for j, a := range appended {
				require.Equal(f, domain.EntryID{Number: int64(i + j)}, a.Position.EntryID)
				require.Equal(f, repository.AppendedNow, a.Outcome)
			}
			i += n
		}
		all := f.readAll(domain.Position{})
		f.requireMessages(messages, all)
		for _, e := range all {
			require.WithinDuration(f, f.readClock(), e.Published, time.Second)
			f.requireMessages(messages[e.Position.Number:], f.readAll(e.Position))
		}
	}},
	{"AStreamWithoutEntriesIsReadAsEmpty", func(f *pushFixture) {
		require.Empty(f, f.readAll(domain.Position{}))
		end, err := f.Streams.End(f.ctx, f.stream)
		require.NoError(f, err)
		require.Empty(f, end.Positions)
	}},
	{"EachPriorityIsASequence", func(f *pushFixture) {
		messages := Messages(12)
		of := make(map[int][]domain.Message)
		for i := range messages {
			messages[i].Priority = i % 3 * 4
			of[messages[i].Priority] = append(of[messages[i].Priority], messages[i])
		}
		for _, m := range slices.Collect(slices.Chunk(messages, 5)) {
			f.appendMessages(m...)
		}
		for p, want := range of {
			f.requireMessages(want, f.readAll(domain.Position{EntryID: domain.EntryID{Priority: p}}))
		}
	}},
	{"PayloadsOfAnySizeAndContentAreKept", func(f *pushFixture) {
		messages := Messages(5)
		messages[0].Payload = nil
		messages[1].Payload = []byte{0xff, 0, 1}
		messages[2].Payload = slices.Repeat([]byte("a\"\\\x00"), 5000)
		messages[3].Payload = slices.Repeat([]byte{0xfe}, domain.MaxPayload)
		messages[4].Attributes = nil
		f.appendMessages(messages...)
		f.requireMessages(messages, f.readAll(domain.Position{}))
	}},
	{"TheSameIdWithTheSameContentIsADuplicate", func(f *pushFixture) {
		messages := Messages(3)
		messages[1].ID = "mine"
		first := f.appendMessages(messages...)
		again := f.appendMessages(messages[1], Messages(1)[0])
		require.Equal(f, repository.AppendDuplicate, again[0].Outcome)
		require.Equal(f, first[1].Position.EntryID, again[0].Position.EntryID)
		require.Equal(f, repository.AppendedNow, again[1].Outcome)
		require.Len(f, f.readAll(domain.Position{}), 4)
	}},
	{"TheSameIdWithOtherContentIsAConflict_AndTheOthersAreAppended", func(f *pushFixture) {
		messages := Messages(4)
		messages[0].ID = "mine"
		f.appendMessages(messages[0])
		messages[2].ID, messages[3].ID = "mine", "yours"
		appended := f.appendMessages(messages[1:]...)
		require.Equal(f, repository.AppendConflict, appended[1].Outcome)
		require.Equal(f, repository.AppendedNow, appended[0].Outcome)
		require.Equal(f, repository.AppendedNow, appended[2].Outcome)
		f.requireMessages([]domain.Message{messages[0], messages[1], messages[3]}, f.readAll(domain.Position{}))
	}},
	{"AMessageIsFoundByTheIdOfItsSender", func(f *pushFixture) {
		messages := Messages(3)
		messages[1].ID, messages[1].Priority = "mine", 4
		appended := f.appendMessages(messages...)
		_, err := f.Streams.Find(f.ctx, f.stream, "yours")
		f.wantKind(domain.NotFound, err)
		_, err = f.Streams.Find(f.ctx, f.stream, "")
		f.wantKind(domain.NotFound, err)
		_, err = f.Streams.Find(f.ctx, NewStream(), "mine")
		f.wantKind(domain.NotFound, err)
		for range 2 {
			at, err := f.Streams.Find(f.ctx, f.stream, "mine")
			require.NoError(f, err)
			require.Equal(f, appended[1].Position.EntryID, at.EntryID)
			f.requireMessages(messages[1:2], f.readAll(at))
			f.appendMessages(Messages(60)...) // moves the entry into a page, perhaps of an earlier segment
		}
		f.advanceClock(repository.IDRetention + time.Hour)
		_, err = f.Streams.Find(f.ctx, f.stream, "mine")
		f.wantKind(domain.NotFound, err)
	}},
	{"TheSpanThatAppendsAnEntryIsKeptIfItIsSampled", func(f *pushFixture) {
		sampled, unsampled := spanOf(1, 0), spanOf(2, 0)
		sampled.State, unsampled.Sampled = "a=b", false
		for i, c := range []domain.TraceContext{sampled, unsampled, {}} {
			m := Messages(1)
			m[0].ID = fmt.Sprint(i)
			appended, err := f.Streams.Append(domain.WithTraceContext(f.ctx, c), f.stream, m)
			require.NoError(f, err)
			require.Equal(f, c.Stored(), appended[0].Accepted)
			appended, err = f.Streams.Append(domain.WithTraceContext(f.ctx, spanOf(3, 0)), f.stream, m)
			require.NoError(f, err)
			require.Equal(f, repository.AppendDuplicate, appended[0].Outcome, "it is no part of the content")
			f.appendMessages(Messages(60)...) // moves the entry into a page
		}
		entries := f.readAll(domain.Position{})
		require.Equal(f, spanOf(1, 0), entries[0].Accepted)
		for _, e := range entries[1:] {
			require.Zero(f, e.Accepted)
		}
	}},
	{"SpansOfAppendsAtOnceAreKeptApart", func(f *pushFixture) {
		var appends errgroup.Group
		for i := range 9 {
			c := domain.TraceContext{}
			if i%3 > 0 {
				c = spanOf(byte(i), i)
			}
			appends.Go(func() error {
				m := Messages(2)
				m[0].Attributes["span"], m[1].Attributes["span"] = c.Parent(), c.Parent()
				_, err := f.Streams.Append(domain.WithTraceContext(f.ctx, c), f.stream, m)
				return err
			})
		}
		require.NoError(f, appends.Wait())
		for _, e := range f.readAll(domain.Position{}) {
			require.Equal(f, e.Attributes["span"], e.Accepted.Parent())
		}
	}},
	{"AnIdIsForgottenAfterADay", func(f *pushFixture) {
		m := Messages(1)
		m[0].ID = "mine"
		f.appendMessages(m...)
		f.advanceClock(repository.IDRetention - time.Hour)
		require.Equal(f, repository.AppendDuplicate, f.appendMessages(m...)[0].Outcome)
		f.advanceClock(2 * time.Hour)
		require.Equal(f, repository.AppendedNow, f.appendMessages(m...)[0].Outcome)
	}},
	{"InvalidMessagesAreRefused", func(f *pushFixture) {
		messages := Messages(2)
		messages[0].ID, messages[1].ID = "same", "same"
		_, err := f.Streams.Append(f.ctx, f.stream, messages)
		require.Equal(f, domain.Invalid, domain.KindOf(err))
		_, err = f.Streams.Append(f.ctx, f.stream, Messages(repository.MaxAppend+1))
		require.Equal(f, domain.Invalid, domain.KindOf(err))
		messages[1].Priority = domain.Priorities
		_, err = f.Streams.Append(f.ctx, f.stream, messages[1:])
		require.Equal(f, domain.Invalid, domain.KindOf(err))
		require.Empty(f, f.readAll(domain.Position{}))
	}},
	{"ExpiredEntriesAreGone_AndCounted", func(f *pushFixture) {
		for range 3 {
			f.appendMessages(Messages(10)...)
			f.advanceClock(time.Hour)
		}
		f.advanceClock(PushRetention - 90*time.Minute)
		f.appendMessages(Messages(1)...)
		found, err := f.Streams.Read(f.ctx, f.stream, domain.Position{EntryID: domain.EntryID{Number: 4}}, 100)
		require.NoError(f, err)
		require.EqualValues(f, 20, found.Start.Number, "entries 4 to 19 were removed")
		require.Len(f, f.readAll(domain.Position{}), 11)
	}},
	{"ExpiredEntriesAreSkippedFromAnyPosition", func(f *pushFixture) {
		const batches, each = 40, 20
		for range batches {
			f.appendMessages(Messages(each)...)
			f.advanceClock(time.Hour)
		}
		f.advanceClock(PushRetention - 25*time.Hour - 30*time.Minute)
		const kept = 25 * each
		for n := 0; n < batches*each; n += 53 {
			all := f.readAll(domain.Position{EntryID: domain.EntryID{Number: int64(n)}})
			require.Len(f, all, min(kept, batches*each-n), "from entry %d on", n)
		}
	}},
	{"ManyCallersAppendEachMessageOnce", func(f *pushFixture) {
		const callers, each = 20, 5
		var g sync.WaitGroup
		for i := range callers {
			g.Go(func() {
				for j := range each {
					m := Messages(1)
					m[0].Attributes["n"] = fmt.Sprintf("%d/%d", i, j)
					if _, err := f.Streams.Append(f.ctx, f.stream, m); err != nil {
						f.Error(err)
					}
				}
			})
		}
		g.Wait()
		next := make(map[string]int)
		for _, e := range f.readAll(domain.Position{}) {
			var i, j int
			_, err := fmt.Sscanf(e.Attributes["n"], "%d/%d", &i, &j)
			require.NoError(f, err)
			require.Equal(f, next[fmt.Sprint(i)], j, "a caller's messages are in its order")
			next[fmt.Sprint(i)]++
		}
		require.Len(f, next, callers)
	}},
	{"AnAppendReturnsTheCursorsThatAreListedAsSync", func(f *pushFixture) {
		require.Empty(f, f.appendMessages(Messages(1)...)[0].Sync)
		a, b := NewCursorID(), NewCursorID()
		for range 2 { // the call may be repeated
			require.NoError(f, f.Streams.AddSync(f.ctx, f.stream, a))
		}
		require.Equal(f, []domain.CursorID{a}, f.appendMessages(Messages(1)...)[0].Sync)
		require.NoError(f, f.Streams.AddSync(f.ctx, f.stream, b))
		for range 5 { // the cursors are listed in each segment
			for _, appended := range f.appendMessages(Messages(3)...) {
				require.Equal(f, []domain.CursorID{a, b}, appended.Sync)
			}
		}
		listed, err := f.Streams.Sync(f.ctx, f.stream)
		require.NoError(f, err)
		require.Equal(f, []domain.CursorID{a, b}, listed)
		for range 2 {
			require.NoError(f, f.Streams.RemoveSync(f.ctx, f.stream, a))
		}
		require.Equal(f, []domain.CursorID{b}, f.appendMessages(Messages(1)...)[0].Sync)
		require.Len(f, f.readAll(domain.Position{}), 18)
	}},
	{"AStreamWithoutEntriesListsCursors", func(f *pushFixture) {
		listed, err := f.Streams.Sync(f.ctx, f.stream)
		require.NoError(f, err)
		require.Empty(f, listed)
		require.NoError(f, f.Streams.RemoveSync(f.ctx, f.stream, f.id))
		require.NoError(f, f.Streams.AddSync(f.ctx, f.stream, f.id))
		m := Messages(1)
		m[0].ID = "mine"
		for _, outcome := range []repository.AppendOutcome{repository.AppendedNow, repository.AppendDuplicate} {
			appended := f.appendMessages(m...)[0]
			require.Equal(f, outcome, appended.Outcome)
			require.Equal(f, []domain.CursorID{f.id}, appended.Sync)
		}
	}},
	{"TheEndIsWhereTheNextEntryWillBe", func(f *pushFixture) {
		messages := Messages(9)
		messages[8].Priority = 3
		f.appendMessages(messages...)
		end, err := f.Streams.End(f.ctx, f.stream)
		require.NoError(f, err)
		require.Len(f, end.Positions, 2)
		f.appendMessages(messages...)
		for i, want := range []int{8, 1} {
			require.Len(f, f.readAll(end.Positions[i]), want)
		}
	}},
}
