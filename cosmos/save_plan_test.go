package cosmos

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

func TestPlanFillsTheLastDrawerAndThenNewOnes(t *testing.T) {
	actor := repositorytest.NewActor()
	series, charges := repositorytest.Event(actor, repositorytest.WithOrigin(domain.TimeSeries)), repositorytest.Event(actor, repositorytest.WithOrigin(domain.Charges))
	a, b := nameOf(series.Cabinet()), nameOf(charges.Cabinet())
	h := &head{Reserved: 100, Watermark: 90, Cabinets: map[cabinetName]cabinetState{
		a: {Drawer: "old", Fill: 2, Ordinal: 4, Sequence: 88, Total: 40},
		b: {Ordinal: 7, Sequence: 90, Total: 3}, // after a rollback, the head contains no current drawer of the cabinet
	}}
	names := 0
	newID := func() string { names++; return fmt.Sprintf("new%d", names) }
	events := []numberedEvent{{Event: &series}, {Event: &charges}, {Event: &series}, {Event: &series}, {Event: &series}, {Event: &series}}

	p := planSave(h, events, 3, "me", newID)

	assert.Equal(t, []drawerPart{
		{Cabinet: a, Drawer: "old", Ordinal: 4, Slot: 2, Count: 1, First: 101, Last: 101},
		{Cabinet: b, Drawer: "new2", Ordinal: 8, Slot: 0, Count: 1, New: true, First: 102, Last: 102},
		{Cabinet: a, Drawer: "new3", Ordinal: 5, Slot: 0, Count: 3, New: true, First: 103, Last: 105},
		{Cabinet: a, Drawer: "new4", Ordinal: 6, Slot: 0, Count: 1, New: true, First: 106, Last: 106},
	}, p.intent.Parts)
	assert.Equal(t, domain.Sequence(101), p.intent.First, "behind all that was ever reserved, not behind the watermark")
	assert.Equal(t, domain.Sequence(106), p.intent.Last)

	reserved := h.reservePlan(p)
	assert.Equal(t, domain.Sequence(106), reserved.Reserved)
	assert.Equal(t, domain.Sequence(90), reserved.Watermark)
	assert.Nil(t, h.Intent, "the head that was read is left as it is")

	committed := reserved.commitIntent(nil)
	assert.Equal(t, domain.Sequence(106), committed.Watermark)
	assert.Nil(t, committed.Intent)
	assert.Equal(t, cabinetState{Drawer: "new4", Fill: 1, Ordinal: 6, Sequence: 106, Total: 45}, committed.Cabinets[a])
	assert.Equal(t, cabinetState{Drawer: "new2", Fill: 1, Ordinal: 8, Sequence: 102, Total: 4}, committed.Cabinets[b])

	cleared := reserved.claimIntent().clearIntent()
	assert.Equal(t, domain.Sequence(106), cleared.Reserved, "numbers are not reused")
	assert.Equal(t, domain.Sequence(90), cleared.Watermark)
	assert.Equal(t, cabinetState{Ordinal: 6, Sequence: 88, Total: 40}, cleared.Cabinets[a], "the next Save begins a new drawer")
	assert.False(t, p.intent.Aborted, "the intent itself is never changed")
}

func TestCabinetNames_DifferIfTheirKeysDiffer(t *testing.T) {
	key := func(recipient, origin, contentType string) domain.CabinetKey {
		r, err := domain.ParseActorID(recipient)
		assert.NoError(t, err)
		o, err := domain.ParseOrigin(origin)
		assert.NoError(t, err)
		c, err := domain.ParseContentType(contentType)
		assert.NoError(t, err)
		return domain.CabinetKey{Recipient: r, Origin: o, ContentType: c}
	}
	seen := make(map[string]domain.CabinetKey)
	for _, k := range []domain.CabinetKey{
		key("a", "b", "c"), key("a", "b", "c|d"), key("a", "b", "c_d"), key("a_b", "c", "d"), key("a", "b_c", "d"), key("a.b", "c", "|d"),
	} {
		for _, text := range []string{cabinetKey(k)} {
			other, twice := seen[text]
			assert.False(t, twice, "%v and %v are both %q", k, other, text)
			seen[text] = k
		}
		back, err := cabinetOf(k.Recipient, nameOf(k))
		assert.NoError(t, err)
		assert.Equal(t, k, back)
	}
}
