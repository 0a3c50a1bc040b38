package cosmos

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// The simulation found that a check of a page with an impossible slot ended the process, because the check
// allocated memory for that number of slots. A bundle without slots had the same effect.
func TestAnImpossibleNumber_IsDamageAndTakesNoMemory(t *testing.T) {
	const huge = 1 << 45
	for name, damage := range map[string]func(d *damagedStore){
		"a page that begins before the drawer": func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[1].ID, pageID(0), "/slot", -huge)
		},
		"a page that never ends": func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, d.readDrawers(d.main)[1].ID, pageID(0), "/until", huge)
		},
		"a drawer of many events": func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), d.readDrawers(d.main)[1].ID, "/count", huge)
		},
		"a drawer with a number below nothing": func(d *damagedStore) {
			d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), d.readDrawers(d.main)[1].ID, "/count", -1)
		},
		"a bundle of many events": func(d *damagedStore) {
			d.patchDocument(d.node.db.bundles, d.actor.String(), d.openBundleID(), "/count", huge)
		},
		"a bundle of many slots": func(d *damagedStore) {
			d.patchDocument(d.node.db.bundles, d.actor.String(), d.openBundleID(), "/ranges/0/to", huge)
		},
		"a bundle of a drawer that cannot be": func(d *damagedStore) {
			d.patchDocument(d.node.db.bundles, d.actor.String(), d.openBundleID(), "/ranges/0/drawer", "no\x00thing")
		},
		"a bundle of no slots": func(d *damagedStore) {
			d.patchDocument(d.node.db.bundles, d.actor.String(), d.openBundleID(), "/ranges", []slotRange{})
		},
		"a head of many events": func(d *damagedStore) {
			d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/cabinets/"+nameOf(d.main)+"/fill", huge)
		},
		"an intent of many slots": func(d *damagedStore) {
			d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/intent", intent{ID: "x", Parts: []drawerPart{{Count: huge}}})
		},
		"an intent for a drawer far behind the last one": func(d *damagedStore) {
			part := drawerPart{Cabinet: nameOf(d.main), Drawer: "x", Ordinal: 1000, Count: 1}
			d.patchDocument(d.node.db.catalog, d.actor.String(), headID, "/intent", intent{ID: "x", Parts: []drawerPart{part}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDamagedStore(t)
				damage(d)
				report, err := d.node.Check(t.Context(), CheckOptions{})
				require.NoError(t, err)
				require.NotEmpty(t, report.Findings)
				require.True(t, report.Findings[0].Damage)
				_, err = d.node.Inspect(t.Context(), d.actor)
				if err != nil {
					require.Equal(t, domain.Damaged, domain.KindOf(err))
				}
			})
		})
	}
}

// A Save increments the count of a drawer by a patch, and Cosmos refuses to increment a member that is not a
// number. The simulation found that the refusal was returned as an unknown error.
func TestADrawerThatCannotBeCountedInIsDamaged(t *testing.T) {
	d := newDamagedStore(t)
	drawers := d.readDrawers(d.main)
	d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), drawers[len(drawers)-1].ID, "/weight", "much")
	_, err := d.node.Save(t.Context(), d.actor, repositorytest.Events(1, d.actor))
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
}

// The simulation found that a Peek panicked: it searched for the position of the bundle in the gate of the
// other group.
func TestAnOpenBundleOfTheWrongGroup_IsDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDamagedStore(t)
		d.patchDocument(d.node.db.bundles, d.actor.String(), d.openBundleID(), "/group", "masterdata")
		group, err := domain.DefaultGroups().GroupOf(domain.TimeSeries)
		require.NoError(t, err)
		_, err = d.node.NextUnacknowledged(t.Context(), d.actor, []domain.Group{group})
		require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
	})
}

// The simulation found that a Peek panicked: it read the slots of the bundle from a tail that did not exist.
func TestAnOpenBundleWithARangeOfNoSlotsIsDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDamagedStore(t)
		d.patchDocument(d.node.db.bundles, d.actor.String(), d.openBundleID(), "/ranges/0/to", 2)
		next, err := d.node.NextUnacknowledged(t.Context(), d.actor, allGroups)
		require.NoError(t, err)
		for _, err = range next.Run.Events(t.Context()) {
			if err != nil {
				break
			}
		}
		require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
	})
}
