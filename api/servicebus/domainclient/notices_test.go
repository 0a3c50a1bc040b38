package domainclient_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// listen passes notices to h until the returned function is called or the test ends.
func listen(t testing.TB, o domainclient.Options, h func(context.Context, *domainclient.Notice) error) (stop func() error) {
	t.Helper()
	domain := newClient(t, o)
	return run(t, func(ctx context.Context) error { return domain.Notices(ctx, h) })
}

func TestNotices_AreDeliveredInOrderAndCompleted(t *testing.T) {
	m := newMarket(t)
	ids := []uuid.UUID{id(1), id(2)}
	_, err := m.exchange.NewBlockBlobClient("b0_a1_ids").UploadBuffer(t.Context(), contract.EncodeIDs(ids), nil)
	require.NoError(t, err)
	for n := range 5 {
		m.notify(fmt.Sprintf("b%d_a1", n), "a1")
	}
	got, events := make(chan domainclient.Notice, 5), make(chan []uuid.UUID, 1)
	listen(t, m.options(), func(ctx context.Context, n *domainclient.Notice) error {
		got <- *n
		if n.ID == "b0_a1" {
			ids, err := n.EventIDs(ctx)
			events <- ids
			return err
		}
		return nil
	})
	for i := range 5 {
		n := await(t, got)
		require.Equal(t, fmt.Sprintf("b%d_a1", i), n.ID)
		require.Equal(t, n.ID+"_ids", n.List)
		require.Equal(t, "a1", n.Recipient)
	}
	require.Equal(t, ids, await(t, events))
	m.waitUntilDrained()
}

func TestNotices_RepeatAFailedNoticeBeforeLaterOnes(t *testing.T) {
	m := newMarket(t)
	m.notify("b1_a1", "a1")
	m.notify("b2_a1", "a1")
	got := make(chan string, 8)
	tries := 0
	listen(t, m.options(), func(_ context.Context, n *domainclient.Notice) error {
		got <- n.ID
		switch tries++; tries {
		case 1:
			return errors.New("the database is away")
		case 2:
			panic("and now this")
		}
		return nil
	})
	for _, want := range []string{"b1_a1", "b1_a1", "b1_a1", "b2_a1"} {
		require.Equal(t, want, await(t, got))
	}
	m.waitUntilDrained()
}

func TestNotices_LeaveTheNoticeInTheQueueWhenStopped(t *testing.T) {
	m := newMarket(t)
	m.notify("b1_a1", "a1")
	began := make(chan struct{})
	stop := listen(t, m.options(), func(ctx context.Context, _ *domainclient.Notice) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	})
	await(t, began)
	require.NoError(t, stop())
	require.EqualValues(t, 1, m.bus.Stats().Active)
}

func TestNotices_DeadLetterOnlyAnUnreadableNotice(t *testing.T) {
	m := newMarket(t)
	name := "garbage"
	m.send("charges-dequeue", &azservicebus.Message{MessageID: &name, Body: []byte("\xff\xff")})
	m.send("charges-dequeue", &azservicebus.Message{MessageID: &name})
	m.notify("b1_a1", "a1")
	got := make(chan string, 1)
	listen(t, m.options(), func(_ context.Context, n *domainclient.Notice) error {
		got <- n.ID
		return nil
	})
	require.Equal(t, "b1_a1", await(t, got))
	require.Eventually(t, func() bool { s := m.bus.Stats(); return s.Active == 0 && s.DeadLetters == 2 }, patience, 5*time.Millisecond)
}

func TestNoticesContinueAfterAMessageThatMakesTheClientPanic(t *testing.T) {
	m := newMarket(t)
	m.send("charges-dequeue", &azservicebus.Message{ApplicationProperties: map[string]any{"DeadLetterReason": int64(1)}})
	m.notify("b1_a1", "a1")
	got := make(chan string, 1)
	listen(t, m.options(), func(_ context.Context, n *domainclient.Notice) error {
		got <- n.ID
		return nil
	})
	require.Equal(t, "b1_a1", await(t, got))
}

func TestNoticesContinueAfterConnectionsBreak(t *testing.T) {
	m := newMarket(t)
	got := make(chan string, 8)
	listen(t, m.options(), func(_ context.Context, n *domainclient.Notice) error {
		got <- n.ID
		return nil
	})
	for n := range 3 {
		process := fmt.Sprintf("b%d_a1", n)
		m.notify(process, "a1")
		require.Equal(t, process, await(t, got))
		m.waitUntilDrained() // without this wait, the bus would deliver the notice again when its lock expires
		m.bus.DropConnections()
		m.busHub = newHub(t, m.bus)
	}
}

func TestNotices_FailIfTheQueueDoesNotExist(t *testing.T) {
	m := newMarket(t)
	o := m.options()
	o.Origin = "Weather"
	err := newClient(t, o).Notices(t.Context(), func(context.Context, *domainclient.Notice) error { return nil })
	require.ErrorContains(t, err, "notices from weather-dequeue: ")
}

func TestEventIDs_RejectsATruncatedList(t *testing.T) {
	m := newMarket(t)
	_, err := m.exchange.NewBlockBlobClient("b1_a1_ids").UploadBuffer(t.Context(), make([]byte, 17), nil)
	require.NoError(t, err)
	m.notify("b1_a1", "a1")
	m.notify("b2_a1", "a1") // the blob that lists the ids of this bundle does not exist
	said := make(chan error, 2)
	listen(t, m.options(), func(ctx context.Context, n *domainclient.Notice) error {
		_, err := n.EventIDs(ctx)
		said <- err
		return nil
	})
	require.ErrorContains(t, await(t, said), "read the ids in b1_a1_ids: list of ids: 17 bytes")
	require.ErrorContains(t, await(t, said), "read the ids in b2_a1_ids: ")
}
