package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	bus "github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/ingest"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/content"
)

// A pipeline contains all parts that process announcements: a bus on a loopback
// port, the ingestion, a hub, and a store on the embedded engine. All data is
// on disk.
type pipeline struct {
	*testing.B
	hub  *watchedHub
	open func() (*azservicebus.Client, error)
}

func newPipeline(b *testing.B) *pipeline {
	b.Helper()
	dir := b.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: filepath.Join(dir, "cosmos")})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, engine.Close()) })
	blobs, err := content.OpenDir(filepath.Join(dir, "content"))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, blobs.Close()) })
	db, err := client.Connect(client.Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: engine.Transport()})
	require.NoError(b, err)
	b.Cleanup(db.Close)
	require.NoError(b, db.Provision(b.Context(), cosmos.Containers()))
	store := cosmos.New(db, blobs, cosmos.Options{Exclusive: true, Retention: -1})

	var entities bus.Entities
	entities.Queues = []bus.QueueSetup{{Name: contract.DataAvailableFIFO}}
	entities.Queues[0].Properties.RequiresSession = true
	namespace, err := bus.Open(bus.Options{Dir: filepath.Join(dir, "bus"), Entities: entities})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, namespace.Close()) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- namespace.Serve(ctx, listener, bus.ServeOptions{}) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-served)
	})
	return &pipeline{
		B:   b,
		hub: &watchedHub{Hub: hub.New(store, store, blobs, hub.Options{}), visible: make(map[domain.EventID]time.Time)},
		open: func() (*azservicebus.Client, error) {
			return azservicebus.NewClientFromConnectionString(namespace.ConnectionString(listener.Addr().String()),
				&azservicebus.ClientOptions{RetryOptions: servicebus.ClientRetries()})
		},
	}
}

// A watchedHub is a hub that records when each event became visible.
type watchedHub struct {
	*hub.Hub

	mu      sync.Mutex
	visible map[domain.EventID]time.Time
	wanted  int
	done    chan struct{} // closed when the wanted number of events is visible
}

func (h *watchedHub) Ingest(ctx context.Context, events []domain.Event) (hub.IngestResult, error) {
	ingested, err := h.Hub.Ingest(ctx, events)
	if err == nil {
		now := time.Now()
		h.mu.Lock()
		defer h.mu.Unlock()
		for i := range events {
			h.visible[events[i].ID] = now
		}
		if h.done != nil && len(h.visible) >= h.wanted {
			close(h.done)
			h.done = nil
		}
	}
	return ingested, err
}

// visibleEvents returns a channel that is closed when this number of events is
// visible.
func (h *watchedHub) visibleEvents(events int) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wanted, h.done = events, make(chan struct{})
	return h.done
}

// startIngestion runs the ingestion until the benchmark ends.
func (p *pipeline) startIngestion() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	in := ingest.New(ingest.Options{Hub: p.hub, Open: p.open, SessionQueue: contract.DataAvailableFIFO})
	go func() { done <- in.Run(ctx) }()
	p.Cleanup(func() {
		cancel()
		require.NoError(p, <-done)
	})
}

// client returns a client of the bus, which is closed when the benchmark ends.
func (p *pipeline) client() *azservicebus.Client {
	p.Helper()
	c, err := p.open()
	require.NoError(p, err)
	p.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

const busSessions = 64

// newAnnouncement returns a message that announces count events, and the id of
// the first event. The events are numbered from first.
func newAnnouncement(first, count int) (domain.EventID, *azservicebus.Message) {
	type event struct {
		ID               string `json:"id"`
		Recipient        string `json:"recipient"`
		Origin           string `json:"origin"`
		ContentType      string `json:"contentType"`
		DocumentType     string `json:"documentType"`
		SupportsBundling bool   `json:"supportsBundling"`
		Weight           int    `json:"weight"`
	}
	recipient := "actor-" + strconv.Itoa(first/count%busSessions)
	list := make([]event, count)
	for i := range list {
		list[i] = event{fmt.Sprintf("%08x-0000-4000-8000-000000000000", first+i), recipient, "TimeSeries", "RSM-012", "E66", true, 1}
	}
	body, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	id, err := domain.ParseEventID(list[0].ID)
	if err != nil {
		panic(err)
	}
	return id, &azservicebus.Message{Body: body, ContentType: to.Ptr(contract.JSON), SessionID: &recipient}
}

// sendEvents announces this number of events, with perMessage events in each
// message. A batch contains messages of only one session.
func (p *pipeline) sendEvents(out *azservicebus.Sender, events, perMessage int) {
	messages := events / perMessage
	for session := range busSessions {
		var batch *azservicebus.MessageBatch
		flush := func() {
			if batch != nil && batch.NumMessages() > 0 {
				require.NoError(p, out.SendMessageBatch(p.Context(), batch, nil))
			}
			batch = nil
		}
		for n := session; n < messages; n += busSessions {
			_, m := newAnnouncement(n*perMessage, perMessage)
			for batch == nil || batch.AddMessage(m, nil) != nil {
				flush()
				var err error
				batch, err = out.NewMessageBatch(p.Context(), nil)
				require.NoError(p, err)
			}
		}
		flush()
	}
}

// BenchmarkIngestionOverServiceBus moves events from the bus to the store
// through 64 sessions. The events are sent either before or while the ingestion
// runs.
func BenchmarkIngestionOverServiceBus(b *testing.B) {
	for _, perMessage := range []int{1, 100} {
		for _, when := range []string{"before", "meanwhile"} {
			b.Run(fmt.Sprintf("events=%d/sent=%s", perMessage, when), func(b *testing.B) {
				p := newPipeline(b)
				events := (b.N + perMessage - 1) / perMessage * perMessage
				client := p.client()
				out, err := client.NewSender(contract.DataAvailableFIFO, nil)
				require.NoError(b, err)
				done := p.hub.visibleEvents(events)
				if when == "before" {
					p.sendEvents(out, events, perMessage)
				}
				b.ResetTimer()
				p.startIngestion()
				if when == "meanwhile" {
					p.sendEvents(out, events, perMessage)
				}
				<-done
				b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
				b.StopTimer()
			})
		}
	}
}

// BenchmarkVisibleAfterSending sends 500 messages per second, and reports how
// long it takes until each event can be peeked. The first second, in which
// sessions are opened, is reported separately.
func BenchmarkVisibleAfterSending(b *testing.B) {
	const senders, pause = 8, 2 * time.Millisecond
	p := newPipeline(b)
	p.startIngestion()
	client := p.client()
	done := p.hub.visibleEvents(b.N)
	type job struct {
		event int
		due   time.Time
	}
	due := make(chan job, b.N)
	sent := make([]map[domain.EventID]time.Time, senders)
	var all sync.WaitGroup
	for i := range sent {
		sent[i] = make(map[domain.EventID]time.Time)
		out, err := client.NewSender(contract.DataAvailableFIFO, nil)
		require.NoError(b, err)
		all.Go(func() {
			for j := range due {
				id, m := newAnnouncement(j.event, 1)
				sent[i][id] = j.due
				require.NoError(b, out.SendMessage(b.Context(), m, nil))
			}
		})
	}
	b.ResetTimer()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	began := time.Now()
	for n := range b.N {
		due <- job{n, <-tick.C}
	}
	close(due)
	all.Wait()
	<-done
	b.StopTimer()
	var took, opening []time.Duration
	for _, part := range sent {
		for id, at := range part {
			if d := p.hub.visible[id].Sub(at); at.Sub(began) < time.Second {
				opening = append(opening, d)
			} else {
				took = append(took, d)
			}
		}
	}
	b.ReportMetric(float64(slices.Max(opening).Microseconds())/1000, "opening-ms")
	if len(took) == 0 {
		return // too few samples for a percentile
	}
	slices.Sort(took)
	for _, percent := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*percent/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", percent))
	}
}
