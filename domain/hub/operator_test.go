package hub_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

var kim = hub.AdminAction{Who: "kim", Why: "ticket 4711"}

// operations is a store in which Freeze returns failure, if that is not nil.
type operations struct {
	repository.Admin
	failure error
}

func (o *operations) Freeze(ctx context.Context, actor domain.ActorID, by repository.AdminAction) error {
	if o.failure != nil {
		return o.failure
	}
	return o.Admin.Freeze(ctx, actor, by)
}

func TestOperator_RequiresNameAndReason(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1)
	open := w.peekBundle()
	operator := hub.NewOperator(w.hub, w.store, nil)
	for _, by := range []hub.AdminAction{
		{},
		{Who: "kim"},
		{Why: "x"},
		{Who: " ", Why: "x"},
		{Who: "kim", Why: "\t"},
		{Who: "kim", Why: "a\nb"},
		{Who: "k\x1b[1m", Why: "x"},
		{Who: "kim", Why: "\xff"},
		{Who: "kim", Why: "\u202e"},
		{Who: strings.Repeat("k", 201), Why: "x"},
		{Who: "kim", Why: strings.Repeat("x", 1001)},
	} {
		for _, err := range []error{
			operator.Release(w.ctx, w.actor, open.ID, by), operator.Skip(w.ctx, w.actor, open.ID, by),
			operator.Freeze(w.ctx, w.actor, by), operator.Thaw(w.ctx, w.actor, by),
		} {
			require.Equal(t, domain.Invalid, domain.KindOf(err), "%q", by)
		}
		_, err := operator.Replay(w.ctx, w.actor, open.Group, by)
		require.Equal(t, domain.Invalid, domain.KindOf(err))
	}
	records, err := operator.Records(w.ctx, w.actor, 10)
	require.NoError(t, err)
	require.Empty(t, records)
	require.Equal(t, open.Bundle, w.peekBundle().Bundle)
}

func TestOperator_LogsNameAndReason(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1)
	var log bytes.Buffer
	ops := &operations{Admin: w.store}
	operator := hub.NewOperator(w.hub, ops, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, operator.Freeze(w.ctx, w.actor, kim))
	require.Regexp(t, `level=INFO msg="operator's order carried out" what=freeze actor=`+w.actor.String()+` who=kim why="ticket 4711"`, log.String())

	ops.failure = domain.Errorf(domain.Unavailable, "no luck")
	require.ErrorIs(t, operator.Freeze(w.ctx, w.actor, kim), ops.failure)
	require.Regexp(t, `level=WARN msg="operator's order failed" what=freeze .*error="no luck"`, log.String())
}

func TestFreeze_MakesPeekFailUntilThaw(t *testing.T) {
	w := newWorld(t, hub.Options{})
	events := w.sendNew(1)
	operator := hub.NewOperator(w.hub, w.store, nil)
	require.NoError(t, operator.Freeze(w.ctx, w.actor, kim))
	_, err := w.hub.Peek(w.ctx, w.newRequest())
	require.ErrorIs(t, err, hub.ErrFrozen)
	require.NotErrorIs(t, err, domain.ErrNoData)
	require.NoError(t, operator.Thaw(w.ctx, w.actor, kim))
	w.requireEvents(w.peekBundle(), events...)
}

func TestOperator_WakesListeners(t *testing.T) {
	inListenWorld(t, func(t *testing.T, w *world, e *watermarkCounter) {
		w.sendNew(1)
		operator := hub.NewOperator(w.hub, e.Store, nil)
		l := w.newListener(rt.TimeSeries)
		defer l.Close()
		require.NoError(t, operator.Freeze(w.ctx, w.actor, kim))
		after, err := w.awaitWake(l, time.Minute)
		require.NoError(t, err)
		require.Zero(t, after)
		require.Zero(t, e.looks)
	})
}
