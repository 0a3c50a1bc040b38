package deadletterqueue_test

import (
	"context"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/deadletterqueue"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain/deadletters"
)

// BenchmarkBehindMany measures two operations on a queue with 100,000 dead letters on a durable
// bus: listing one page, and resending the last dead letter.
func BenchmarkBehindMany(b *testing.B) {
	const many = 100_000
	var e embedded.Entities
	e.Queues = []embedded.QueueSetup{{Name: plain}}
	e.Queues[0].Properties.DeadLetteringOnMessageExpiration = true
	n := bustest.Open(b, embedded.Options{Entities: e, Dir: b.TempDir()})
	client := bustest.Must(bustest.Clients(n)())
	defer func() { _ = client.Close(context.Background()) }()
	sender := bustest.Must(client.NewSender(plain, nil))
	body := make([]byte, 200)
	for sent := 0; sent < many; {
		batch := bustest.Must(sender.NewMessageBatch(b.Context(), nil))
		for range 500 {
			require.NoError(b, batch.AddMessage(&azservicebus.Message{Body: body, TimeToLive: to.Ptr(time.Millisecond)}, nil))
			sent++
		}
		require.NoError(b, sender.SendMessageBatch(b.Context(), batch, nil))
	}
	require.Eventually(b, func() bool { return n.Stats().DeadLetters == many }, time.Minute, time.Millisecond)
	letters := deadletterqueue.New(deadletterqueue.Options{Open: bustest.Clients(n), FetchesAny: true})
	defer func() { require.NoError(b, letters.Close(context.Background())) }()

	b.Run("page", func(b *testing.B) {
		after := int64(0)
		for b.Loop() {
			found, err := letters.Peek(b.Context(), plain, after, deadletters.MaxPage)
			require.NoError(b, err)
			after = (after + int64(len(found))) % (many / 2)
		}
	})
	b.Run("resend", func(b *testing.B) {
		last := int64(many)
		for b.Loop() {
			resent, err := letters.Resend(b.Context(), plain, []int64{last}, who)
			require.NoError(b, err)
			require.Equal(b, 1, resent)
			last--
		}
	})
}
