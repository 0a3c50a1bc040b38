package domain_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/domain"
)

// eventsOfWeights returns one event for each weight. All events support bundling.
func eventsOfWeights(kb ...domain.Weight) []domain.Event {
	events := make([]domain.Event, len(kb))
	for i := range events {
		events[i] = validEvent()
		events[i].Weight = kb[i]
	}
	return events
}

// disableBundling makes the event with index i unsuitable for bundling, and returns events.
func disableBundling(i int, events []domain.Event) []domain.Event {
	events[i].SupportsBundling = false
	return events
}

// offerAll offers all events to f, even after f is full, with the sequences 1, 2, 3 and so on. It
// returns how many events f accepts.
func offerAll(f *domain.Filler, events []domain.Event) int {
	accepted := 0
	for i := range events {
		if f.Take(&events[i], domain.Sequence(i+1)) {
			accepted++
		}
	}
	return accepted
}

func TestFiller_TakesEventsUpToTheLimit(t *testing.T) {
	const limit = domain.MaxBundleWeight
	for _, tc := range []struct {
		name   string
		max    domain.Weight
		events []domain.Event
		want   int
		weight domain.Weight
	}{
		{"an empty bundle without events", 50, nil, 0, 0},
		{"several events fit", 50, eventsOfWeights(10, 20, 5), 3, 35},
		{"exactly full", 50, eventsOfWeights(20, 30, 1), 2, 50},
		{"an event that exceeds the limit by one kilobyte waits", 50, eventsOfWeights(20, 31), 1, 20},
		{"no event overtakes an event that is too heavy", 50, eventsOfWeights(20, 31, 1, 1), 1, 20},
		{"the first event fits with any weight, and no other event fits after it", 50, eventsOfWeights(70, 1), 1, 70},
		{"the first event may fill the bundle alone", 50, eventsOfWeights(50, 1), 1, 50},
		{"W16 a huge first event leaves no room for others", 50, eventsOfWeights(math.MaxInt64, 1, math.MaxInt64), 1, math.MaxInt64},
		{"W16 a huge first event of 32 bits is the only one", 100, eventsOfWeights(math.MaxInt32, 1), 1, math.MaxInt32},
		{"W16 a huge second event waits", 50, eventsOfWeights(1, math.MaxInt64), 1, 1},
		{"a first event without bundling is the only one", 50, disableBundling(0, eventsOfWeights(1, 1, 1)), 1, 1},
		{"an event without bundling in the middle ends the bundle before it", 50, disableBundling(2, eventsOfWeights(1, 1, 1, 1)), 2, 2},
		{"a second event without bundling waits", 50, disableBundling(1, eventsOfWeights(1, 1, 1)), 1, 1},
		{"a first event without bundling that is too heavy is the only one", 50, disableBundling(0, eventsOfWeights(70, 1)), 1, 70},
		{"without a limit, the limit of a bundle applies", 0, eventsOfWeights(limit-1, 1, 1), 2, limit},
		{"without a limit, an event that exceeds the limit of a bundle by one kilobyte waits", 0, eventsOfWeights(limit-1, 2), 1, limit - 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			filler := domain.Filler{Max: tc.max}
			require.Equal(t, tc.want, offerAll(&filler, tc.events))
			var bundle domain.Bundle
			filler.Fill(&bundle)
			require.Equal(t, tc.want, bundle.Count)
			require.Equal(t, tc.weight, bundle.Weight)
		})
	}
}

func TestFiller_LimitsDocumentTypes(t *testing.T) {
	events := eventsOfWeights(slices.Repeat([]domain.Weight{1}, 2*domain.MaxDocumentTypes)...)
	for i := range events {
		var err error
		events[i].DocumentType, err = domain.ParseDocumentType(fmt.Sprintf("%03d%s", i, strings.Repeat("x", 125)))
		require.NoError(t, err)
	}
	var filler domain.Filler
	require.Equal(t, domain.MaxDocumentTypes, offerAll(&filler, events))
	var bundle domain.Bundle
	filler.Fill(&bundle)
	require.LessOrEqual(t, len(bundle.MessageType()), 4<<10+32)

	events[domain.MaxDocumentTypes].DocumentType = events[0].DocumentType
	require.Equal(t, domain.MaxDocumentTypes+1, offerAll(new(domain.Filler), events), "an event of a type that the bundle has fits")
}

func TestFiller_AddsNothingAfterARefusal(t *testing.T) {
	for name, refused := range map[string][]domain.Event{
		"too heavy":        eventsOfWeights(51),
		"without bundling": disableBundling(0, eventsOfWeights(1)),
	} {
		t.Run(name, func(t *testing.T) {
			filler := domain.Filler{Max: 50}
			require.Equal(t, 1, offerAll(&filler, eventsOfWeights(1)))
			require.False(t, filler.Full())
			require.Zero(t, offerAll(&filler, refused))
			require.True(t, filler.Full())
			require.Zero(t, offerAll(&filler, eventsOfWeights(1, 1)))
		})
	}
}

func TestFull_IsTrueIfNoEventCanFit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []domain.Event
		want   bool
	}{
		{"an empty bundle is not full", nil, false},
		{"not full while a kilobyte fits", eventsOfWeights(49), false},
		{"full at the limit", eventsOfWeights(49, 1), true},
		{"full after a first event that is too heavy", eventsOfWeights(51), true},
		{"full after a first event without bundling", disableBundling(0, eventsOfWeights(1)), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			filler := domain.Filler{Max: 50}
			require.Equal(t, len(tc.events), offerAll(&filler, tc.events))
			require.Equal(t, tc.want, filler.Full())
		})
	}
}

func TestABundle_HasUpTo51200EventsOfMinimumWeight(t *testing.T) {
	filler, e := domain.Filler{}, eventsOfWeights(1)[0]
	for i := range domain.Sequence(51_200) {
		require.False(t, filler.Full())
		require.True(t, filler.Take(&e, i+1))
	}
	require.True(t, filler.Full())
	require.False(t, filler.Take(&e, 51_201))
	var bundle domain.Bundle
	filler.Fill(&bundle)
	require.Equal(t, domain.Bundle{
		Count: 51_200, Weight: domain.MaxBundleWeight, First: 1, Last: 51_200,
		DocumentTypes: []domain.DocumentType{e.DocumentType},
	}, bundle)
}

func TestFill_SetsOnlyTheSummaryOfTheEvents(t *testing.T) {
	events := eventsOfWeights(1, 2, 3, 4, 50)
	for i, s := range []string{"B", "A", "B", "C", "D"} {
		events[i].DocumentType = documentType(s)
	}
	filler := domain.Filler{Max: 50}
	for i, at := range []domain.Sequence{7, 8, 20, 1000, 1001} { // sequences may have gaps
		require.Equal(t, i < 4, filler.Take(&events[i], at))
	}
	bundle := domain.Bundle{Group: group("g"), Format: domain.XML, Count: 99}
	filler.Fill(&bundle)
	require.Equal(t, domain.Bundle{
		Group: group("g"), Format: domain.XML,
		Count: 4, Weight: 10, First: 7, Last: 1000,
		DocumentTypes: []domain.DocumentType{documentType("B"), documentType("A"), documentType("C")}, // types in the order in which they first appear
	}, bundle)
}

// countByRules returns how many events go into one bundle. It implements the rules separately from
// Filler.
func countByRules(events []domain.Event, limit uint64) int {
	if len(events) == 0 {
		return 0
	}
	if !events[0].SupportsBundling {
		return 1
	}
	n, sum := 1, uint64(events[0].Weight)
	for _, e := range events[1:] {
		if !e.SupportsBundling || sum+uint64(e.Weight) > limit {
			break
		}
		n, sum = n+1, sum+uint64(e.Weight)
	}
	return n
}

func TestFiller_TakesAsManyEventsAsTheRulesSay(t *testing.T) {
	weight := rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, 60), rapid.Int64Min(1))
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 60).Draw(t, "limit")
		var events []domain.Event
		for _, kb := range rapid.SliceOfN(weight, 0, 20).Draw(t, "weights") {
			e := eventsOfWeights(domain.Weight(kb))[0]
			e.SupportsBundling = rapid.IntRange(0, 9).Draw(t, "bundling") > 0
			events = append(events, e)
		}
		want := countByRules(events, uint64(limit))

		filler := domain.Filler{Max: domain.Weight(limit)}
		for i := range events {
			probe, smallest := filler, eventsOfWeights(1)[0]
			require.Equal(t, !probe.Take(&smallest, 99), filler.Full(), "full means that even the smallest event does not fit")
			require.Equal(t, i < want, filler.Take(&events[i], domain.Sequence(10*i+10)), "event %d", i)
		}
		var bundle domain.Bundle
		filler.Fill(&bundle)
		require.Equal(t, want, bundle.Count)
		if want > 0 {
			require.Equal(t, domain.Sequence(10), bundle.First)
			require.Equal(t, domain.Sequence(10*want), bundle.Last)
		}
	})
}
