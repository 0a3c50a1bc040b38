package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// An object in doubt receives the state that was read from the store, and is no longer in doubt.
func TestConfirmSettlesDoubt(t *testing.T) {
	short := must(domain.ParseSequencer(domain.OpaqueSequencer, "ff"))
	long := must(domain.ParseSequencer(domain.OpaqueSequencer, "000"))
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	created := func(s domain.Sequencer, eTag string, at time.Time) domain.ObjectEvent {
		return domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: s, Time: at, ObjectFacts: domain.ObjectFacts{ETag: eTag, Attributes: `{"of":"` + s.String() + `"}`}}
	}
	for _, tc := range []struct {
		name  string
		eTag  string
		found time.Time
		want  string // ETag of the current row
	}{
		{"the store has the content of the lower row", `"short"`, at.Add(time.Minute), `"short"`},
		{"the store has the content of the higher row", `"long"`, at.Add(time.Minute), `"long"`},
		{"the object does not exist in the store", "", at.Add(time.Minute), ""},
		{"the clock of the store is ahead", `"short"`, at.Add(-time.Hour), `"short"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, limits := range limitsOfTables {
				s := newObjectStore(t, limits)
				s.ingestCalls([]domain.ObjectEvent{created(long, `"long"`, at.Add(-time.Second))})
				s.ingestCalls([]domain.ObjectEvent{created(short, `"short"`, at)})
				require.True(t, s.object.Doubt)
				require.Equal(t, `"long"`, s.object.Current.ETag)
				all := s.object
				e, ok := all.Confirm(tc.eTag, tc.found)
				if !ok { // the row is spilled, so Confirm does not find its ETag
					require.Len(t, all.Rows, 1)
					continue
				}
				s.ingestCalls([]domain.ObjectEvent{e})
				require.False(t, s.object.Doubt)
				if tc.want == "" {
					require.Nil(t, s.object.Current)
					continue
				}
				require.Equal(t, tc.want, s.object.Current.ETag)
				require.Equal(t, domain.Confirmed, s.object.Current.Reason)
				require.NotEmpty(t, s.object.Current.Attributes)
			}
		})
	}
}

// A change after the request to the store counts as later than the response, even if the store's
// clock is behind the hub's clock.
func TestConfirm_IsEarlierThanLaterEvents(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	created := func(sequencer, eTag string, at time.Time) domain.ObjectEvent {
		s := must(domain.ParseSequencer(domain.OpaqueSequencer, sequencer))
		return domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: s, Time: at, ObjectFacts: domain.ObjectFacts{ETag: eTag}}
	}
	for _, ahead := range []time.Duration{0, time.Second, domain.ClockMargin} { // ahead is the time by which the hub's clock is ahead of the store's clock
		s := newObjectStore(t, domain.ObjectLimits{})
		s.ingestCalls([]domain.ObjectEvent{created("000", `"long"`, at.Add(-time.Hour))})
		s.ingestCalls([]domain.ObjectEvent{created("ff", `"short"`, at.Add(-time.Hour))})
		e, ok := s.object.Confirm(`"short"`, at.Add(ahead))
		require.True(t, ok)
		s.ingestCalls([]domain.ObjectEvent{e})
		s.ingestCalls([]domain.ObjectEvent{created("001", `"next"`, at.Truncate(time.Second))})
		require.Equal(t, `"next"`, s.object.Current.ETag)
	}
}

// A state that was read from the store does not end the doubt if a later event exists.
func TestAnOldStateDoesNotSettleDoubt(t *testing.T) {
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	event := func(text string, at time.Time) domain.ObjectEvent {
		return domain.ObjectEvent{Type: domain.ObjectCreated, Sequencer: must(domain.ParseSequencer(domain.OpaqueSequencer, text)), Time: at}
	}
	state := domain.ObjectEvent{Type: domain.ObjectDeleted, Time: at, Carrier: domain.Carrier{Message: "x"}, ObjectFacts: domain.ObjectFacts{Reason: domain.Confirmed}}
	s := newObjectStore(t, domain.ObjectLimits{})
	s.ingestCalls([]domain.ObjectEvent{event("000", at.Add(-time.Second)), event("ff", at.Add(time.Second))})
	s.ingestCalls([]domain.ObjectEvent{state})
	require.True(t, s.object.Doubt)
}

func TestConfirm_NeedsARowAndNoVersions(t *testing.T) {
	v := must(domain.ParseVersionID("v"))
	one := domain.ObjectEvent{Type: domain.ObjectCreated, Carrier: domain.Carrier{Message: "m"}, ObjectFacts: domain.ObjectFacts{ETag: `"e"`}}
	s := newObjectStore(t, domain.ObjectLimits{})
	s.ingestCalls([]domain.ObjectEvent{one})
	_, ok := s.object.Confirm(`"other"`, time.Now())
	require.False(t, ok, "an ETag that no row has")
	one.Version, one.Carrier.Index = v, 1
	s.ingestCalls([]domain.ObjectEvent{one})
	_, ok = s.object.Confirm(`"e"`, time.Now())
	require.False(t, ok, "an object with versions")
}
