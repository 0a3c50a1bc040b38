package hub_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// withUnknownOrigin sets an origin that is not in the market.
func withUnknownOrigin(origin string) rt.Change {
	return rt.WithOrigin(must(domain.ParseOrigin(origin)))
}

// withID sets the id.
func withID(id domain.EventID) rt.Change { return func(e *domain.Event) { e.ID = id } }

func TestIngest_RejectsARequestAsAWhole(t *testing.T) {
	const unknown = `origin: "Weather" is unknown here; known are Aggregations, Charges, MarketRoles, MeteringPoints, TimeSeries`
	const missing = "payload: missing; the content of Charges is sent along with its events"
	to, other := rt.NewActor(), rt.NewActor()
	id := rt.NewEventID()
	twice := fmt.Sprintf("id: %s stands for different contents in this request", id)
	good := func() domain.Event { return rt.Event(to) }
	same := func(changes ...rt.Change) domain.Event { return rt.Event(to, append(changes, withID(id))...) }

	for _, tc := range []struct {
		name   string
		events []domain.Event
		kind   domain.Kind
		faults []string // for each fault: index, field and text
	}{
		{
			"an unknown origin",
			[]domain.Event{good(), rt.Event(to, withUnknownOrigin("Weather"))},
			domain.Invalid,
			[]string{"1 origin " + unknown},
		},
		{
			"no payload where the content is inline",
			[]domain.Event{rt.Event(to, rt.WithOrigin(domain.Charges)), good()},
			domain.Invalid,
			[]string{"0 payload " + missing},
		},
		{
			"one id, two contents",
			[]domain.Event{good(), same(), good(), same(rt.WithWeight(2))},
			domain.Conflict,
			[]string{"1 id " + twice, "3 id " + twice},
		},
		{
			"one id, with a payload and without",
			[]domain.Event{same(), same(rt.WithPayload("null"))},
			domain.Conflict,
			[]string{"0 id " + twice, "1 id " + twice},
		},
		{
			"one id, three contents: each is named once",
			[]domain.Event{same(), same(rt.WithWeight(2)), same(rt.WithWeight(3))},
			domain.Conflict,
			[]string{"0 id " + twice, "1 id " + twice, "2 id " + twice},
		},
		{
			"one id, and the first content comes again",
			[]domain.Event{same(), same(rt.WithWeight(2)), same()},
			domain.Conflict,
			[]string{"0 id " + twice, "1 id " + twice},
		},
		{
			"every fault is told, in the order of the events",
			[]domain.Event{same(), rt.Event(to, withUnknownOrigin("Weather")), same(rt.WithoutBundling), rt.Event(other, rt.WithOrigin(domain.Charges))},
			domain.Invalid,
			[]string{"0 id " + twice, "1 origin " + unknown, "2 id " + twice, "3 payload " + missing},
		},
		{
			"an event at fault takes part in no other fault",
			[]domain.Event{same(withUnknownOrigin("Weather")), same()},
			domain.Invalid,
			[]string{"0 origin " + unknown},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, hub.Options{Content: map[domain.Origin]domain.ContentMode{domain.Charges: domain.Inline}})
			ingested, err := w.hub.Ingest(w.ctx, tc.events)
			require.Zero(t, ingested)
			require.Equal(t, tc.kind.String(), domain.KindOf(err).String())
			rejection, ok := errors.AsType[*hub.RejectionError](err)
			require.True(t, ok, "a RejectionError, not %v", err)
			var faults []string
			for _, f := range rejection.Faults {
				faults = append(faults, fmt.Sprintf("%d %s %v", f.Index, f.Field, f.Err))
			}
			require.Equal(t, tc.faults, faults)

			require.Equal(t, err, w.hub.Check(tc.events), "what Check says, Ingest does")
			for _, w.actor = range []domain.ActorID{to, other} {
				w.requireNoData()
			}
		})
	}
}

func TestRejectionError_HasCountAndFirstFault(t *testing.T) {
	w := newWorld(t, hub.Options{})
	err := w.hub.Check([]domain.Event{rt.Event(w.actor), rt.Event(w.actor, withUnknownOrigin("A")), rt.Event(w.actor, withUnknownOrigin("B"))})
	require.EqualError(t, err, "2 of the events cannot be stored; the first is event 1: "+
		`origin: "A" is unknown here; known are Aggregations, Charges, MarketRoles, MeteringPoints, TimeSeries`)
}

func TestCheck_AcceptsWhatIngestAccepts(t *testing.T) {
	w := newWorld(t, hub.Options{Content: map[domain.Origin]domain.ContentMode{domain.Charges: domain.Inline}})
	e := rt.Event(w.actor)
	twin := rt.Event(rt.NewActor(), withID(e.ID), rt.WithWeight(9))
	events := []domain.Event{e, e, twin, rt.Event(w.actor, rt.WithOrigin(domain.Charges), rt.WithPayload("null"))}
	require.NoError(t, w.hub.Check(events))
	ingested, err := w.hub.Ingest(w.ctx, events)
	require.NoError(t, err)
	require.Equal(t, hub.IngestResult{Accepted: 3, Duplicates: 1}, ingested)
	require.NoError(t, w.hub.Check(nil))
}

func TestGroups_AreTheConfiguredOnes(t *testing.T) {
	w := newWorld(t, hub.Options{})
	require.Equal(t, domain.DefaultGroups(), w.hub.Groups())

	weather := must(domain.ParseOrigin("Weather"))
	groups := domain.Groups{}.With(weather, domain.Group{})
	w = newWorld(t, hub.Options{Groups: groups})
	require.Equal(t, groups, w.hub.Groups())
	require.NoError(t, w.hub.Check(rt.Events(1, w.actor, rt.WithOrigin(weather))))
	require.Error(t, w.hub.Check(rt.Events(1, w.actor)), "time series are none of its own")
}
