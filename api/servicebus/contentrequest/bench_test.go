package contentrequest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/messagehub/messagehub/api/servicebus/contentrequest"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
)

// runInstantDomain runs a domain that replies immediately. Its queue has no sessions, so that it
// adds almost nothing to the measured time.
func runInstantDomain(b *testing.B, open func() (*azservicebus.Client, error)) {
	b.Helper()
	client, err := open()
	require.NoError(b, err)
	queues := contract.DefaultQueues(domain.TimeSeries.String())
	requests, err := client.NewReceiverForQueue(queues.Request, nil)
	require.NoError(b, err)
	replies, err := client.NewSender(queues.Reply, nil)
	require.NoError(b, err)
	ctx, stop := context.WithCancel(context.Background())
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			got, err := requests.ReceiveMessages(ctx, 32, &azservicebus.ReceiveMessagesOptions{TimeAfterFirstMessage: time.Microsecond})
			if err != nil {
				return
			}
			for _, m := range got {
				answering.Go(func() {
					var q contract.DataBundleRequestContract
					_ = proto.Unmarshal(m.Body, &q)
					_ = replies.SendMessage(ctx, receivedRequest{&q, m}.content(uri), nil)
					_ = requests.CompleteMessage(ctx, m, nil)
				})
			}
		}
	})
	b.Cleanup(func() {
		stop()
		answering.Wait()
		_ = client.Close(context.Background())
	})
}

func benchmarkRequests(b *testing.B, atOnce int) {
	entities := bustest.Entities()
	for i, q := range entities.Queues {
		entities.Queues[i].Properties.RequiresSession = q.Name == "timeseries-reply"
	}
	n := bustest.Open(b, embedded.Options{Dir: b.TempDir(), Entities: entities})
	open := bustest.ServeTCP(b, n)
	runInstantDomain(b, open)
	r := newRequests(b, n, func(o *contentrequest.Options) { o.Open = open })
	_, err := sendRequest(b, r, aRequest())
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	for range atOnce {
		all.Go(func() {
			for range left {
				if _, err := sendRequest(b, r, aRequest()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

func BenchmarkRequest(b *testing.B)          { benchmarkRequests(b, 1) }
func BenchmarkRequests32AtOnce(b *testing.B) { benchmarkRequests(b, 32) }
