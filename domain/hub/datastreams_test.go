package hub_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

func TestADataStream_FollowsTheWatermarkOfItsActor(t *testing.T) {
	store := memory.New(memory.Options{})
	streams := hub.NewDataStreams(memory.NewStreams(time.Hour, time.Now), store)
	actor := rt.NewActor()
	stream := domain.DataStream(actor)
	end, err := streams.End(t.Context(), stream)
	require.NoError(t, err)
	require.Empty(t, end.Positions)
	for _, e := range rt.Events(5, actor) {
		_, err := store.Save(t.Context(), actor, []domain.Event{e})
		require.NoError(t, err)
	}
	end, err = streams.End(t.Context(), stream)
	require.NoError(t, err)
	require.Equal(t, int64(5), end.Positions[0].Number)

	// Read returns only the newest entry, whose data includes that of all earlier ones.
	found, err := streams.Read(t.Context(), stream, domain.Position{EntryID: domain.EntryID{Number: 2}}, 100)
	require.NoError(t, err)
	require.Len(t, found.Entries, 1)
	require.Equal(t, int64(4), found.Entries[0].Position.Number)
	require.Equal(t, int64(2), found.Start.Number)
	require.JSONEq(t, `{"actor":"`+actor.String()+`","watermark":5}`, string(found.Entries[0].Payload))

	// At the position of a taken entry, Read returns this entry.
	taken := domain.Position{EntryID: domain.EntryID{Number: 2}, Page: 3}
	found, err = streams.Read(t.Context(), stream, taken, 100)
	require.NoError(t, err)
	require.Equal(t, taken, found.Entries[0].Position)
	require.JSONEq(t, `{"actor":"`+actor.String()+`","watermark":3}`, string(found.Entries[0].Payload))

	// After a taken entry, Read again returns only the newest entry.
	found, err = streams.Read(t.Context(), stream, taken.Next(), 100)
	require.NoError(t, err)
	require.Equal(t, int64(4), found.Entries[0].Position.Number)
	found, err = streams.Read(t.Context(), stream, end.Positions[0], 100)
	require.NoError(t, err)
	require.Empty(t, found.Entries)
	_, err = streams.Append(t.Context(), stream, []domain.Message{{}})
	require.Equal(t, domain.Invalid, domain.KindOf(err))
}
