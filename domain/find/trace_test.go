package find_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/find"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestFind_ReturnsTheEventsAndBundlesOfATrace(t *testing.T) {
	w := newWorld(t, find.Options{})
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	span, err := domain.ParseTraceContext(parent, "")
	require.NoError(t, err)
	events := repositorytest.Events(30, w.actor)
	_, err = w.store.Save(domain.WithTraceContext(t.Context(), span), w.actor, events)
	require.NoError(t, err)
	other := repositorytest.NewActor()
	w.saveEvents(other, 1)
	w.peekBundle(other, func(b *domain.Bundle) { b.Peeked = span })

	for _, id := range []string{"0af7651916cd43dd8448eb211c80319c", "0AF7651916CD43DD8448EB211C80319C", parent} {
		a := w.find(find.Query{ID: id})
		require.Equal(t, []find.Kind{find.Trace}, a.Scope.Kinds)
		require.Equal(t, 2, a.Scope.Mailboxes)
		require.Len(t, a.Results, 2)
		for _, r := range a.Results {
			require.Contains(t, r.Steps[0].Details, find.Detail{Name: "span", Value: "b7ad6b7169203331"})
			if r.Kind == find.Bundle {
				require.Equal(t, other, r.Actor)
				continue
			}
			require.Equal(t, find.Save, r.Kind)
			require.Equal(t, "Save of 30 events from TimeSeries", r.Title)
			require.Contains(t, r.Steps[0].Details[3].Value, "and 10 more")
			require.Contains(t, r.Steps[0].Details[3].Value, events[repository.MaxSaveIDs-1].ID.String())
		}
	}
	require.Len(t, w.find(find.Query{ID: parent, Actor: w.actor}).Results, 1)
	require.Contains(t, w.findEvent(&events[0]).Steps[0].Details, find.Detail{Name: "trace", Value: span.TraceID.String()})
	for _, id := range []string{"0af7651916cd43dd8448eb211c80319d", "00000000000000000000000000000000", parent[:54]} {
		require.True(t, w.find(find.Query{ID: id}).IsUnknown(), id)
	}
}
