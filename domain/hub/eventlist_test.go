package hub_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain/hub"
)

func TestPeek_ReservesMemoryForLargeBundlesOnly(t *testing.T) {
	for n, want := range map[int][]int{hub.ManyEvents - 1: nil, 4000: {4000}} {
		w := newWorld(t, hub.Options{})
		w.sendNew(n)
		req := w.newRequest()
		var reserved []int
		req.Reserve = func(_ context.Context, events int) error { reserved = append(reserved, events); return nil }
		peeked, err := w.hub.Peek(w.ctx, req)
		require.NoError(t, err)
		require.Equal(t, n, peeked.Count)
		require.Equal(t, want, reserved)
	}
}

func TestPeek_OpensNoBundleIfItCannotReserveMemory(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(4000)
	req, full := w.newRequest(), errors.New("full")
	req.Reserve = func(context.Context, int) error { return full }
	_, err := w.hub.Peek(w.ctx, req)
	require.ErrorIs(t, err, full)
	req.OpenOnly = true
	_, err = w.hub.Peek(w.ctx, req)
	require.Error(t, err, "no bundle is open")
}

func TestOpenBody_ReadsAllEventsOfALargeBundleBeforeItsFirstByte(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(4000)
	first := w.body(w.peekBundle())
	ctx, cancel := context.WithCancel(w.ctx)
	again, err := w.hub.Peek(ctx, w.newRequest()) // for this Peek, the body must read the events from the store
	require.NoError(t, err)
	body, err := again.Open(w.ctx)
	require.NoError(t, err)
	begin := make([]byte, 1)
	_, err = io.ReadFull(body, begin)
	require.NoError(t, err)
	cancel() // from here on, reads of the store fail
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, first, string(begin)+string(rest))
}
