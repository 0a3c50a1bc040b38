package hub_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

func TestViewBundle_ReturnsTheBodyAsTheActorGetsIt(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(3)
	open := w.peekBundle()
	want := w.body(open)
	var log bytes.Buffer
	operator := hub.NewOperator(w.hub, w.store, slog.New(slog.NewTextHandler(&log, nil)))
	for _, close := range []func(){func() {}, func() { w.dequeueBundle(open) }} {
		close()
		seen, err := operator.ViewBundle(w.ctx, w.actor, open.ID, 1<<20, kim)
		require.NoError(t, err)
		require.Equal(t, want, string(seen.Body))
		require.False(t, seen.IsCut)
		require.Equal(t, open.ID, seen.Bundle.ID)
	}
	records, err := operator.Records(w.ctx, w.actor, 10)
	require.NoError(t, err)
	require.Len(t, records, 2)
	require.Equal(t, "look", records[0].What)
	require.Regexp(t, `msg="operator's order carried out" bundle_id=`+open.ID.String()+` what=look`, log.String())
}

func TestViewBundle_ReadsUpToItsLimit(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(100)
	open := w.peekBundle()
	want := w.body(open)
	operator := hub.NewOperator(w.hub, w.store, nil)
	seen, err := operator.ViewBundle(w.ctx, w.actor, open.ID, 100, kim)
	require.NoError(t, err)
	require.Equal(t, want[:100], string(seen.Body))
	require.True(t, seen.IsCut)
	seen, err = operator.ViewBundle(w.ctx, w.actor, open.ID, int64(len(want)), kim)
	require.NoError(t, err)
	require.False(t, seen.IsCut)
}

// unrecordedLooks is a store that cannot record who reads a bundle.
type unrecordedLooks struct{ repository.Admin }

var errNoRecord = errors.New("no record")

func (unrecordedLooks) RecordView(context.Context, domain.ActorID, domain.BundleID, repository.AdminAction) error {
	return errNoRecord
}

func TestViewBundle_ReturnsNothingIfItCannotBeRecorded(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1)
	open := w.peekBundle()
	operator := hub.NewOperator(w.hub, unrecordedLooks{w.store}, nil)
	seen, err := operator.ViewBundle(w.ctx, w.actor, open.ID, 100, kim)
	require.ErrorIs(t, err, errNoRecord)
	require.Nil(t, seen)
	_, err = operator.ViewBundle(w.ctx, w.actor, open.ID, 100, hub.AdminAction{Who: "kim"})
	require.Equal(t, domain.Invalid, domain.KindOf(err))
	_, err = operator.ViewBundle(w.ctx, w.actor, rt.NewBundleID(), 100, kim)
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}
