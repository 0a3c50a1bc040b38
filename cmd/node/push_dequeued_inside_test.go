package node

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
	"github.com/messagehub/messagehub/repository/memory"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// The store contains a record of each subscription to Dequeues, for each group.
// A failover of the account may lose a record, and a new group has no record.
// The node that serves the subscription must therefore store the records again.
func TestAServedSubscription_RequestsDequeuesAgain(t *testing.T) {
	store, definitions, ctx := memory.New(memory.Options{}), memory.NewDefinitions(), t.Context()
	s := subscribe.New(subscribe.Ports{
		Definitions: definitions, Streams: memory.NewStreams(time.Hour, time.Now), Cursors: memory.NewCursors(time.Now), Dequeues: store,
	}, nil, subscribe.Options{})
	owner := repositorytest.NewActor()
	created, err := s.Create(ctx, subscribe.Draft{
		Subscription: domain.Subscription{Owner: owner, Topic: domain.DequeuedTopic, CallbackURL: "https://example.org/"},
	})
	require.NoError(t, err)
	require.NoError(t, store.WithdrawDequeues(ctx, owner, created.ID))
	cfg := config.Default()
	r := newReceivers(&cfg, nil, &subscribe.Dequeues{Requests: store, Definitions: definitions}, nil, time.Now, prometheus.NewRegistry())
	_, err = r.Receiver(ctx, created.ID.Cursor(), false)
	require.NoError(t, err)
	changed, err := store.RequestDequeues(ctx, owner, created.ID)
	require.NoError(t, err)
	require.False(t, changed, "it was requested")
}
