package inspect_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

func TestATestCall_StoresAndCountsNothing(t *testing.T) {
	w := newWorld(t, "type == 'never'")
	before, err := w.cursors.Standing(t.Context(), w.id.Cursor())
	require.NoError(t, err)
	w.answer, w.body = domain.Answer{Status: 202, Took: time.Second}, "thanks"
	r, err := w.Service.Test(t.Context(), w.reader, w.id)
	require.NoError(t, err)
	require.Equal(t, &inspect.TestResult{Answer: w.answer, IsSuccess: true, Body: []byte("thanks"), MessageID: "test-random"}, r)
	require.Equal(t, inspect.TestType, w.tested[0].Attributes["type"])
	w.answer = domain.Answer{Status: 410, Error: "gone"}
	r, err = w.Service.Test(t.Context(), w.reader, w.id)
	require.NoError(t, err)
	require.False(t, r.IsSuccess)
	after, err := w.cursors.Standing(t.Context(), w.id.Cursor())
	require.NoError(t, err)
	require.Equal(t, before, after)
	end, err := w.streams.End(t.Context(), w.stream())
	require.NoError(t, err)
	require.Empty(t, end.Positions)
}

func TestTestCalls_AreLimited(t *testing.T) {
	w := newWorld(t, "")
	for range 5 {
		_, err := w.Service.Test(t.Context(), w.reader, w.id)
		require.NoError(t, err)
	}
	w.now = w.now.Add(20 * time.Second)
	_, err := w.Service.Test(t.Context(), w.reader, w.id)
	require.Equal(t, domain.Busy, domain.KindOf(err))
	limit, ok := errors.AsType[*inspect.TestLimitError](err)
	require.True(t, ok)
	require.Equal(t, 40*time.Second, limit.Pause)
	require.Len(t, w.tested, 5)
	w.now = w.now.Add(limit.Pause)
	_, err = w.Service.Test(t.Context(), w.reader, w.id)
	require.NoError(t, err)

	// There is also a limit for the test calls of all owners together.
	for range 29 {
		d := w.newSubscription(rt.NewActor())
		_, err = w.Service.Test(t.Context(), inspect.Reader{Actor: d.Owner}, d.ID)
		require.NoError(t, err)
	}
	d := w.newSubscription(rt.NewActor())
	_, err = w.Service.Test(t.Context(), inspect.Reader{Actor: d.Owner}, d.ID)
	require.Equal(t, domain.Busy, domain.KindOf(err))
}
