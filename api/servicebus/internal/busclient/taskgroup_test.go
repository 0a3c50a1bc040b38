package busclient_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

func TestTaskGroup_CloseWaitsForTasksAndStartsNoMore(t *testing.T) {
	g := busclient.NewTaskGroup()
	release, ran := make(chan struct{}), false
	require.True(t, g.Go(func() {
		<-release
		ran = true
	}))
	closed := make(chan error)
	go func() { closed <- g.Close(context.Background()) }()
	close(release)
	require.NoError(t, <-closed)
	require.True(t, ran)
	require.False(t, g.Go(func() { t.Error("a task after Close") }))
}

func TestTaskGroup_StopsItsTasksWhenTheContextEnds(t *testing.T) {
	g := busclient.NewTaskGroup()
	stopped := make(chan struct{})
	require.True(t, g.Go(func() {
		<-g.Context().Done()
		close(stopped)
	}))
	ended, end := context.WithCancel(context.Background())
	end()
	require.ErrorIs(t, g.Close(ended), context.Canceled)
	<-stopped
}
