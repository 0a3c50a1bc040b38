package subscribe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
)

func TestTheTopicOfObjects_IsOnlyForOperators(t *testing.T) {
	for _, hasObjects := range []bool{false, true} {
		w := newWorld(t, subscribe.Options{HasObjects: hasObjects})
		d := w.draft()
		d.Topic = domain.ObjectsTopic
		_, err := w.Create(t.Context(), d)
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.ErrorContains(t, err, "/topic: only operators")
		d.IsOperator = true
		s, err := w.Create(t.Context(), d)
		if !hasObjects {
			require.ErrorContains(t, err, "objects.topic")
			continue
		}
		require.NoError(t, err)
		d.IsOperator = false
		_, _, err = w.Put(t.Context(), s.ID, d, subscribe.Match{})
		require.ErrorContains(t, err, "/topic: only operators")
		d.IsOperator, d.IsSync = true, true
		_, err = w.Create(t.Context(), d)
		require.ErrorContains(t, err, "/delivery")
	}
}
