package domain_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

// limitsOfTables contains the limits with which each table is tested: no limits, and limits that
// spill most rows.
var limitsOfTables = []domain.ObjectLimits{{}, {Rows: 1}, {Rows: 2}, {Rows: 3}, {Rows: 8}, {Bytes: 500}}

func TestObjectTables(t *testing.T) {
	for _, tables := range [][]objecttest.Table{objecttest.NativeTables, objecttest.NullTables} {
		for _, tc := range tables {
			t.Run(tc.Name, func(t *testing.T) {
				for _, limits := range limitsOfTables {
					s := newObjectStore(t, limits)
					for _, events := range objecttest.Calls(tc.Script) {
						s.ingestCalls(events)
						s.checkObject()
					}
					require.Equal(t, tc.Want, s.describe(), "limits %v", limits)
				}
			})
		}
	}
}

// TestObjectVersions is the table of current states with versions, from the specification FM-new.
// Each step delivers all earlier events again, and then a new one.
func TestObjectVersions(t *testing.T) {
	steps := []struct{ event, want string }{
		{"C@1/v1", "v1"},
		{"C@2/v2", "v2"},
		{"C@3/v3", "v3"},
		{"D@4/v2", "v3"},
		{"M@5/v4", ""},
		{"C@6/v5", "v5"},
		{"D@7/v5", ""},
		{"D@8/v4", "v3"},
		{"D@9/v3", "v1"},
		{"D@99/v1", ""},
	}
	for _, limits := range limitsOfTables {
		s := newObjectStore(t, limits)
		var script string
		for i, step := range steps {
			script += "[" + step.event + "]"
			for _, events := range objecttest.Calls(script) {
				s.ingestCalls(events)
				s.checkObject()
			}
			current := ""
			if s.object.Current != nil {
				current = s.object.Current.Version.String()
			}
			require.Equal(t, step.want, current, "limits %v, step %d", limits, i+1)
		}
	}
}

// TestObjectsOfFixtureLists_AreCurrentIfLastCreated tests rules FM-27 and FM-28 with n events. The
// events with even numbers are Created. Bucket, key and version depend on the event's number.
func TestObjectsOfFixtureLists_AreCurrentIfLastCreated(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		n, perBucket, perKey int
		want                 []string
	}{
		{"FM-27", 10, 4, 3, []string{"2", "8"}},
		{"FM-28", 30, 8, 5, []string{"4", "14", "24"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stores := make(map[string]*objectStore)
			rng := newRNG(27)
			for _, i := range rng.Perm(tc.n) {
				object := fmt.Sprint(i/tc.perBucket, "/", i/tc.perKey)
				if stores[object] == nil {
					stores[object] = newObjectStore(t, domain.ObjectLimits{})
				}
				kind := []string{"C", "D"}[i%2]
				stores[object].ingestCalls(objecttest.Calls(fmt.Sprintf("[%s@%d/%d]", kind, i, i/tc.perKey))[0])
			}
			var current []string
			for _, s := range stores {
				if s.object.Current != nil {
					current = append(current, s.object.Current.Sequencer.String())
				}
			}
			require.ElementsMatch(t, tc.want, current)
		})
	}
}

func TestObjectPairs(t *testing.T) {
	for _, tc := range objecttest.PairTables {
		t.Run(tc.Name, func(t *testing.T) {
			for _, limits := range limitsOfTables {
				s := newObjectStore(t, limits)
				for _, events := range objecttest.Calls(tc.Script) {
					s.ingestCalls(events)
					s.checkObject()
				}
				require.Equal(t, tc.Want, s.describePairs(), "limits %v", limits)
			}
		})
	}
}
