package repositorytest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var saveRules = []contractRule{
	{name: "1 event is returned with every field", test: requireSavedEvents(1)},
	{name: "2 events are returned in order", test: requireSavedEvents(2)},
	{name: "10,000 events are returned from a full drawer", test: requireSavedEvents(10_000)},
	{name: "10,001 events are returned in order from two drawers", test: requireSavedEvents(10_001)},

	{name: "several Saves are returned in order", capacity: 3, test: func(f *fixture) {
		var all []domain.Event
		for n := range 6 {
			all = append(all, f.saveNew(n)...)
		}
		f.wantDequeue(all...)
		f.wantNothing()
	}},

	{name: "to save no events is valid and changes nothing", test: func(f *fixture) {
		require.Zero(f, f.save())
		f.wantNothing()
		want := f.saveNew(1)
		require.Zero(f, f.save())
		f.requirePeek(want...)
	}},

	{name: "an event of another recipient is Invalid and nothing is stored", test: func(f *fixture) {
		events := append(f.events(2), Event(NewActor()))
		_, err := f.Events.Save(f.ctx, f.actor, events)
		f.wantRefusal(domain.Invalid, err)
		f.wantNothing()
		f.withActor(events[2].Recipient).wantNothing()
		require.Equal(f, 2, f.save(events[:2]...).Accepted)
	}},

	{name: "an event that lacks what every event has is Invalid and nothing is stored", test: func(f *fixture) {
		for lacks, change := range map[string]Change{
			"id":           func(e *domain.Event) { e.ID = domain.EventID{} },
			"contentType":  func(e *domain.Event) { e.ContentType = domain.ContentType{} },
			"documentType": func(e *domain.Event) { e.DocumentType = domain.DocumentType{} },
			"weight":       WithWeight(0),
			"payload":      WithPayload(""),
		} {
			_, err := f.Events.Save(f.ctx, f.actor, []domain.Event{f.event(), f.event(change)})
			f.wantRefusal(domain.Invalid, err)
			require.ErrorContains(f, err, lacks)
		}
		f.wantNothing()
	}},
	{name: "an event of an unknown origin is Invalid and nothing is stored", test: func(f *fixture) {
		events := append(f.events(2), f.event(WithOrigin(must(domain.ParseOrigin("Unheard-of")))))
		_, err := f.Events.Save(f.ctx, f.actor, events)
		f.wantRefusal(domain.Invalid, err)
		f.wantNothing()
		require.Equal(f, 2, f.save(events[:2]...).Accepted)
	}},

	{name: "recipients do not see each other's events", test: func(f *fixture) {
		other := f.withActor(NewActor())
		mine, theirs := f.saveNew(2), other.saveNew(3)
		f.wantDequeue(mine...)
		f.wantNothing()
		other.requirePeek(theirs...)
	}},

	{name: "two recipients may have events with the same id", test: func(f *fixture) {
		other := f.withActor(NewActor())
		mine, theirs := f.event(), other.event()
		theirs.ID = mine.ID
		require.Equal(f, 1, f.save(mine).Accepted)
		require.Equal(f, 1, other.save(theirs).Accepted)
		f.wantDequeue(mine)
		other.wantDequeue(theirs)
	}},

	{name: "an event sent twice in one Save is stored once", test: func(f *fixture) {
		e := f.event()
		require.Equal(f, repository.Saved{Accepted: 1, Duplicates: 1}, f.save(e, e))
		f.wantDequeue(e)
		f.wantNothing()
	}},

	{name: "an event sent again while it waits is stored once", test: func(f *fixture) {
		events := f.saveNew(3)
		require.Equal(f, repository.Saved{Duplicates: 3}, f.save(events...))
		f.wantDequeue(events...)
		f.wantNothing()
	}},

	{name: "an event sent again while its bundle is open is stored once", test: func(f *fixture) {
		events := f.saveNew(2)
		open := f.peek()
		require.Equal(f, repository.Saved{Duplicates: 2}, f.save(events...))
		f.acknowledge(open)
		f.wantNothing()
	}},

	{name: "an event sent again after it was acknowledged is not delivered again", test: func(f *fixture) {
		events := f.saveNew(2)
		f.acknowledge(f.peek())
		require.Equal(f, repository.Saved{Duplicates: 2}, f.save(events...))
		f.wantNothing()
		changed := events[1]
		changed.Weight++
		require.Equal(f, repository.Saved{Conflicts: []int{0}}, f.save(changed))
		f.wantNothing()
	}},

	{name: "an id with other content is a conflict, alone, in every field", test: func(f *fixture) {
		for _, change := range []Change{
			WithOrigin(domain.Aggregations), WithContentType("other"), WithDocumentType("other"), WithWeight(2), WithoutBundling,
			WithPayload(`{"other":1}`),
		} {
			first, before, after := f.event(), f.event(), f.event()
			other := first
			change(&other)
			require.Equal(f, repository.Saved{Accepted: 3, Conflicts: []int{2}}, f.save(first, before, other, after))
			require.Equal(f, repository.Saved{Conflicts: []int{0}}, f.save(other))
			f.wantDequeue(first, before, after)
			f.wantNothing()
		}
	}},

	{name: "an id with another payload is a conflict", test: func(f *fixture) {
		first := f.event(WithPayload(`{"a":1}`))
		other := first
		other.Payload = []byte(`{"a":2}`)
		require.Equal(f, repository.Saved{Accepted: 1, Conflicts: []int{1}}, f.save(first, other))
		other.Payload = nil
		require.Equal(f, repository.Saved{Conflicts: []int{0}}, f.save(other))
		require.Equal(f, repository.Saved{Duplicates: 1}, f.save(first))
	}},

	{name: "the same id in another cabinet is a conflict", test: func(f *fixture) {
		first := f.event(WithContentType("one"))
		other := first
		WithContentType("two")(&other)
		require.Equal(f, 1, f.save(first).Accepted)
		require.Equal(f, repository.Saved{Accepted: 1, Conflicts: []int{0}}, f.save(other, f.event(WithContentType("two"))))
	}},

	{name: "conflicts are listed by index, among duplicates and new events", test: func(f *fixture) {
		known := f.saveNew(3)
		changed := slices.Clone(known)
		for i := range changed {
			changed[i].Weight += 7
		}
		a, b := f.event(), f.event()
		saved := f.save(changed[0], a, known[1], changed[2], b, a, changed[1])
		require.Equal(f, repository.Saved{Accepted: 2, Duplicates: 2, Conflicts: []int{0, 3, 6}}, saved)
		f.wantDequeue(append(known, a, b)...)
		f.wantNothing()
	}},

	{name: "duplicates do not change the order of new events", capacity: 3, test: func(f *fixture) {
		e := f.events(9)
		f.save(e[0], e[1], e[2])
		f.save(e[1], e[3], e[0], e[4], e[4], e[2], e[5])
		f.save(e[5], e[6], e[7], e[3], e[8])
		f.wantDequeue(e...)
		f.wantNothing()
	}},

	{name: "payloads are in the content store, byte for byte", test: requirePayloads},

	{name: "the caller may change its events after a Save", test: func(f *fixture) {
		events := []domain.Event{f.event(WithPayload(`{"n":1}`)), f.event()}
		sent := slices.Clone(events)
		f.save(events...)
		require.Equal(f, sent, events)
		events[0].Weight, events[1].ID = 99, NewEventID()
		copy(events[0].Payload, "xxxxxxx")
		got := f.requirePeek(sent...)
		require.Equal(f, `{"n":1}`, f.readPayload(got.Events[0].PayloadAt))
	}},

	{name: "a Save with an ended context stores nothing", test: func(f *fixture) {
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		events := f.events(2)
		_, err := f.Events.Save(ended, f.actor, events)
		require.ErrorIs(f, err, context.Canceled)
		f.wantNothing()
		require.Equal(f, 2, f.save(events...).Accepted)
	}},
}

// requireSavedEvents returns a rule that saves n events in one call and reads them.
func requireSavedEvents(n int) func(f *fixture) {
	return func(f *fixture) {
		events := f.events(n)
		for i := range events {
			WithDocumentType(fmt.Sprintf("RSM%03d", i%7))(&events[i])
			events[i].Weight = domain.Weight(1 + i%5)
			events[i].SupportsBundling = i%3 > 0
			if i%1000 == 1 {
				WithPayload(fmt.Sprintf(`{"n":%d}`, i))(&events[i])
			}
		}
		require.Equal(f, repository.Saved{Accepted: n}, f.save(events...))
		next := f.readNext(TimeSeries)
		require.Nil(f, next.Open)
		require.Equal(f, int64(n), next.Waiting)
		f.wantSame(events, f.readRange(next.Run))
	}
}

func requirePayloads(f *fixture) {
	big := `"` + strings.Repeat("energy ", 40_000) + `"`
	payloads := []string{`{"a":1}`, "", `[]`, big, `"æøå"`, "", `{"b":2}`}
	var events []domain.Event
	for i, p := range payloads {
		e := f.event(WithContentType(fmt.Sprintf("type-%d", i%2)))
		if p != "" {
			WithPayload(p)(&e)
		}
		events = append(events, e)
	}
	require.Equal(f, len(events), f.save(events...).Accepted)
	want := make(map[domain.EventID]string)
	for i, e := range events {
		want[e.ID] = payloads[i]
	}
	for _, b := range f.drain() {
		for _, e := range b.Events {
			require.Nil(f, e.Payload)
			if want[e.ID] == "" {
				require.True(f, e.PayloadAt.IsZero())
			} else {
				require.Equal(f, want[e.ID], f.readPayload(e.PayloadAt))
			}
			delete(want, e.ID)
		}
	}
	require.Empty(f, want)
}

// readPayload reads a section of the content store.
func (f *fixture) readPayload(at repository.Section) string {
	f.Helper()
	data, err := ReadPayload(f.ctx, f.Stores, at)
	require.NoError(f, err)
	return string(data)
}
