package domain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/objecttest"
)

// Forgetting rows of a watched object does not change the object's state. Neither does forgetting a
// whole object that is not watched.
func TestForget_KeepsAnObjectThatIsWatched(t *testing.T) {
	name, err := domain.ParseObjectName("bucket", "key")
	require.NoError(t, err)
	for _, isWatched := range []bool{false, true} {
		o := domain.Object{Name: name, IsWatched: isWatched, Changes: 7}
		for _, events := range objecttest.Calls("[C@01] [D@02]") {
			u := o.Update(nil)
			u.Apply(events)
			changes, _ := u.Finish(domain.ObjectLimits{})
			o = changes.Object
		}
		version := o.Changes
		u := o.Update(nil)
		u.Forget(domain.ObjectRetention(time.Hour), objecttest.FirstMoment.Add(20*24*time.Hour), domain.ObjectOrder{})
		changes, _ := u.Finish(domain.ObjectLimits{})
		require.Empty(t, changes.Event)
		require.Equal(t, !isWatched, changes.IsGone)
		require.Empty(t, changes.Object.Rows)
		require.Equal(t, version, changes.Object.Changes)
		if isWatched {
			require.EqualValues(t, 8, version)
			u := changes.Object.Update(nil)
			u.Forget(domain.ObjectRetention(time.Hour), objecttest.FirstMoment.Add(40*24*time.Hour), domain.ObjectOrder{})
			again, _ := u.Finish(domain.ObjectLimits{})
			require.True(t, again.IsEmpty, "each sweep would write the object")
		}
	}
}
