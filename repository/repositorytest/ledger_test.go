package repositorytest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func TestLedger(t *testing.T) {
	actor := NewActor()
	events := Events(4, actor)
	strange := Event(actor)
	// delivered returns one bundle that contains the events with these indexes.
	delivered := func(indexes ...int) PeekedBundle {
		b := PeekedBundle{Bundle: domain.Bundle{ID: NewBundleID(), Group: TimeSeries, Cabinet: events[0].Cabinet()}}
		var filler domain.Filler
		for _, i := range indexes {
			e := repository.StoredEvent{Event: events[i], Sequence: domain.Sequence(10 + i)}
			require.True(t, filler.Take(&e.Event, e.Sequence))
			b.Events = append(b.Events, e)
		}
		filler.Fill(&b.Bundle)
		return b
	}
	changed := func(b PeekedBundle, change func(*PeekedBundle)) PeekedBundle { change(&b); return b }

	for _, tc := range []struct {
		name    string
		bundles []PeekedBundle
		want    string // empty if Check finds no error
	}{
		{"all in order", []PeekedBundle{delivered(0, 1), delivered(2, 3)}, ""},
		{"what is unsure may be missing", []PeekedBundle{delivered(0, 1, 2)}, ""},
		{"one lost", []PeekedBundle{delivered(0, 2)}, "was lost"},
		{"none delivered", nil, "was lost"},
		{"one twice in a bundle", []PeekedBundle{delivered(0, 1, 1, 2)}, "is in bundle"},
		{"one twice in two bundles", []PeekedBundle{delivered(0, 1), delivered(1, 2)}, "is in bundle"},
		{"two exchanged", []PeekedBundle{delivered(1, 0, 2)}, "sender 7: event 1 comes where event 0 should"},
		{"bundles exchanged", []PeekedBundle{delivered(2), delivered(0, 1)}, "sequence number 10 comes after 12"},
		{"sequence number repeated", []PeekedBundle{changed(delivered(0, 1, 2), func(b *PeekedBundle) { b.Events[1].Sequence = 10 })}, "sequence number 10 comes after 10"},
		{"never saved", []PeekedBundle{delivered(0, 1, 2), changed(delivered(3), func(b *PeekedBundle) { b.Events[0].Event = strange })}, "was never sent to this actor"},
		{"changed", []PeekedBundle{changed(delivered(0, 1, 2), func(b *PeekedBundle) { b.Events[1].SupportsBundling = false })}, "breaks the bundling rules"},
		{"payload lost", []PeekedBundle{changed(delivered(0, 1, 2), func(b *PeekedBundle) { b.Events[1].PayloadAt.Object = "x" })}, "its content is not the one that was sent"},
		{"a bundle that lies", []PeekedBundle{changed(delivered(0, 1, 2), func(b *PeekedBundle) { b.Count = 2 })}, "but it says"},
		{"a bundle of another cabinet", []PeekedBundle{changed(delivered(0, 1, 2), func(b *PeekedBundle) { b.Cabinet.Origin = domain.Charges })}, "is of"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var ledger Ledger
			ledger.Saved(7, events[:3]...)
			ledger.Saved(8, events[0]) // a duplicate, which does not change the position of the event
			ledger.Unsure(7, events[3])
			err := ledger.Check(tc.bundles)
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.want)
			}
		})
	}
}

func TestLedger_RequiresEventsOfARepeatedSave(t *testing.T) {
	e := Event(NewActor())
	var ledger Ledger
	ledger.Unsure(0, e)
	require.NoError(t, ledger.Check(nil))
	ledger.Saved(0, e)
	require.ErrorContains(t, ledger.Check(nil), "was lost")
}
