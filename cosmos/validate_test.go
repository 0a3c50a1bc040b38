package cosmos

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A document contains an impossible number, for example a huge number of slots. A check must report the
// damage, and must not allocate memory for that number.
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

// The count of a drawer is not a number, so Cosmos DB refuses the patch of a Save that increments it. The
// Save must return damage, not an unknown error.
func TestADrawerThatCannotBeCountedInIsDamaged(t *testing.T) {
	d := newDamagedStore(t)
	drawers := d.readDrawers(d.main)
	d.patchDocument(d.node.db.cabinets, cabinetKey(d.main), drawers[len(drawers)-1].ID, "/weight", "much")
	_, err := d.node.Save(t.Context(), d.actor, repositorytest.Events(1, d.actor))
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
}

// The document of an open bundle contains a different group from its gate. A Peek must return an error of
// the kind Damaged and not panic.
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

// The document of an open bundle contains a range without slots. Reading the bundle must return an error of
// the kind Damaged and not panic.
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
