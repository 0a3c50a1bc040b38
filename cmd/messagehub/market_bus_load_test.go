package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// A busRun consists of three domains and many actors. They continue while two
// hubs between them are killed and restarted.
type busRun struct {
	seed    uint64
	total   int // total number of events
	actors  []string
	ledger  energymarket.Ledger
	domains []*busDomain
	hubs    []*busHub
	kills   int

	bus     *busProcess
	account string   // URL of the storage account
	environ []string // environment of the hubs

	confirmed    atomic.Int64 // confirmed events
	progress     chan struct{}
	allConfirmed chan struct{} // closed when all events have been confirmed
	once         sync.Once
	lostReplies  atomic.Int64 // number of Dequeues whose reply was lost
}

func newBusRun(t *testing.T, seed uint64, events, actors int) *busRun {
	r := &busRun{seed: seed, ledger: energymarket.NewLedger(), progress: make(chan struct{}, 1), allConfirmed: make(chan struct{})}
	for i := range actors {
		r.actors = append(r.actors, energymarket.NewGLN(fmt.Sprintf("579%09d", i)))
	}
	r.newEngines(t)
	for i := range 2 {
		h := &busHub{data: filepath.Join(t.TempDir(), fmt.Sprint(i)), place: newPlace()}
		r.hubs = append(r.hubs, h)
		require.NoError(t, r.startHub(t, h))
	}
	for i, d := range []struct {
		origin  string
		form    domainclient.Form
		request bool
	}{{"Charges", domainclient.Protobuf, true}, {"TimeSeries", domainclient.JSON, true}, {"MeteringPoints", domainclient.JSON, false}} {
		r.domains = append(r.domains, newBusDomain(t, r, i, d.origin, d.form, d.request, events/3))
		r.total += events / 3
	}
	return r
}

func (r *busRun) isOver() bool { return r.confirmed.Load() >= int64(r.total) }

// await waits until n events have been confirmed.
func (r *busRun) await(ctx context.Context, n int64) {
	for r.confirmed.Load() < min(n, int64(r.total)) {
		select {
		case <-r.progress:
		case <-ctx.Done():
			return
		}
	}
}

// act peeks and dequeues as an actor, at either hub, until all events of all
// actors are confirmed.
func (r *busRun) act(ctx context.Context, index int) error {
	random := rand.New(rand.NewPCG(r.seed, uint64(200+index)))
	for {
		select {
		case <-r.allConfirmed:
			return nil
		default:
		}
		id, err := r.peek(ctx, random, r.actors[index])
		if err == nil && id != "" {
			err = r.dequeue(ctx, random, r.actors[index], id)
		}
		if err != nil {
			return err
		}
	}
}

// callEither calls try with the two hubs in turn, until one answers.
func (r *busRun) callEither(ctx context.Context, random *rand.Rand, try func(*hubclient.Client) error) error {
	for i := random.IntN(2); ; i++ {
		hub, _ := r.hubs[i%2].place.currentHub()
		err := try(hub)
		refused, isProblem := errors.AsType[*hubclient.Problem](err)
		_, isViolation := errors.AsType[violation](err)
		switch {
		case err == nil:
			return nil
		case isViolation, isProblem && !refused.IsTemporary():
			return err
		}
		if clock.Sleep(ctx, time.Duration(10+random.IntN(40))*time.Millisecond) != nil {
			return fmt.Errorf("%w, after: %w", ctx.Err(), err)
		}
	}
}

func (r *busRun) peek(ctx context.Context, random *rand.Rand, actor string) (id string, err error) {
	return id, r.callEither(ctx, random, func(hub *hubclient.Client) error {
		asked := r.ledger.Now()
		var body []byte
		var err error
		if id, body, err = hub.Peek(ctx, actor, hubclient.PeekOptions{Wait: time.Second}); err != nil || id == "" {
			return err
		}
		if err := r.ledger.ReceiveBundle(actor, id, body, asked); err != nil {
			return violation{err}
		}
		return nil
	})
}

// dequeue repeats a Dequeue until there is a reply. A 404 is valid only if the
// reply to an earlier attempt was lost.
func (r *busRun) dequeue(ctx context.Context, random *rand.Rand, actor, id string) error {
	lost := false
	return r.callEither(ctx, random, func(hub *hubclient.Client) error {
		ok, err := hub.Dequeue(ctx, actor, id)
		switch {
		case err != nil:
			if _, isProblem := errors.AsType[*hubclient.Problem](err); !isProblem && !lost {
				r.lostReplies.Add(1)
			}
			lost = true
			return err
		case !ok && !lost:
			return violation{fmt.Errorf("bundle %s of %s is 404, although it was peeked and never dequeued", id, actor)}
		}
		r.ledger.Confirm(actor, id, ok)
		if n := r.confirmed.Add(int64(r.ledger.Size(actor, id))); n >= int64(r.total) {
			r.once.Do(func() { close(r.allConfirmed) })
		}
		nudge(r.progress)
		return nil
	})
}

// A busDomain is a domain that sends events, replies to content requests, and
// receives notices.
type busDomain struct {
	run     *busRun
	index   int
	origin  string
	request bool // request means that the hub requests content from this domain
	events  int
	client  *domainclient.Client

	mu        sync.Mutex
	documents map[uuid.UUID][]byte
	notices   map[string][]string // bundles of each actor, in the order of their first notices
	noticed   map[string]bool     // ids of all bundles in notices
	more      chan struct{}       // contains a value if a notice has arrived
}

func newBusDomain(t *testing.T, r *busRun, index int, origin string, form domainclient.Form, request bool, events int) *busDomain {
	key, err := container.NewSharedKeyCredential(embedded.WellKnownAccount, embedded.WellKnownKey)
	require.NoError(t, err)
	exchange, err := container.NewClientWithSharedKeyCredential(r.account+"/messagehub-exchange", key, nil)
	require.NoError(t, err)
	c, err := domainclient.New(domainclient.Options{
		Origin: origin, Form: form, EventsPerMessage: 5, Connect: domainclient.ConnectionString(r.bus.connection), Exchange: exchange,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) })
	return &busDomain{
		run: r, index: index, origin: origin, request: request, events: events, client: c, documents: make(map[uuid.UUID][]byte),
		notices: make(map[string][]string), noticed: make(map[string]bool), more: make(chan struct{}, 1),
	}
}

// send sends all events to random actors, in calls of up to 50 events.
func (d *busDomain) send(ctx context.Context) error {
	random := energymarket.NewGenerator(d.run.seed, uint64(100+d.index))
	for left := d.events; left > 0; {
		batch := make([]domainclient.Event, min(left, 1+random.IntN(50)))
		for i := range batch {
			batch[i] = d.event(random)
		}
		if _, err := d.client.Send(ctx, batch); err != nil {
			return fmt.Errorf("domain %s: %w", d.origin, err)
		}
		left -= len(batch)
	}
	return nil
}

// event generates and records an event. The document is the event's payload or,
// if the hub requests content, is stored in documents.
func (d *busDomain) event(random *energymarket.Generator) domainclient.Event {
	id := random.UUID()
	e := energymarket.Event{
		ID: id, Recipient: d.run.actors[random.IntN(len(d.run.actors))], Origin: d.origin, ContentType: "data",
		Payload: fmt.Appendf(nil, `{"test_MarketDocument":{"mRID":%q,"n":%d}}`, id, random.IntN(1000)),
	}
	d.run.ledger.SendEvent(d.index, &e)
	sent := domainclient.Event{
		ID: uuid.MustParse(id), Recipient: e.Recipient, ContentType: e.ContentType, DocumentType: "E66",
		SupportsBundling: random.IntN(20) > 0, Weight: 1 + random.Int64N(3),
	}
	if !d.request {
		sent.Payload = e.Payload
		return sent
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.documents[sent.ID] = e.Payload
	return sent
}

// serve replies to content requests and receives notices, until ctx ends.
func (d *busDomain) serve(ctx context.Context) error {
	if !d.request {
		return nil
	}
	var both sync.WaitGroup
	var serving, noticing error
	both.Go(func() { serving = d.client.Serve(ctx, d.content) })
	both.Go(func() { noticing = d.client.Notices(ctx, d.notice) })
	both.Wait()
	return errors.Join(serving, noticing)
}

// content returns a bundle's documents as a JSON array.
func (d *busDomain) content(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
	ids, err := r.EventIDs(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	documents := make([][]byte, len(ids))
	for i, id := range ids {
		if documents[i] = d.documents[id]; documents[i] == nil {
			return nil, &domainclient.Failure{Reason: domainclient.DatasetNotFound, Description: id.String()}
		}
	}
	return io.MultiReader(bytes.NewReader([]byte("[")), bytes.NewReader(bytes.Join(documents, []byte(","))), bytes.NewReader([]byte("]"))), nil
}

func (d *busDomain) notice(_ context.Context, n *domainclient.Notice) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.noticed[n.ID] {
		d.noticed[n.ID] = true
		d.notices[n.Recipient] = append(d.notices[n.Recipient], n.ID)
	}
	nudge(d.more)
	return nil
}

// awaitNotices waits until a notice has arrived for every confirmed bundle.
func (d *busDomain) awaitNotices(ctx context.Context) error {
	for d.request {
		d.mu.Lock()
		noticed := len(d.noticed)
		d.mu.Unlock()
		want := bundlesOf(d.run.ledger, d.origin+"|data")
		if noticed == len(want) {
			return nil
		}
		select {
		case <-d.more:
		case <-time.After(3 * patience): // long, because another hub needs some time to find the notices of a dead hub
			return fmt.Errorf("domain %s has heard of %d bundles, and %d were confirmed", d.origin, noticed, len(want))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// findDisorder describes each notice that did not arrive in the order of the
// bundles.
func (d *busDomain) findDisorder() (faults []string) {
	if !d.request {
		return nil
	}
	place := bundlesOf(d.run.ledger, d.origin+"|data")
	for actor, ids := range d.notices {
		if !slices.IsSortedFunc(ids, func(a, b string) int { return place[a] - place[b] }) {
			faults = append(faults, fmt.Sprintf("notices of %s for %s: %v", d.origin, actor, ids))
		}
	}
	return faults
}

func (r *busRun) countNotices() (n int) {
	for _, d := range r.domains {
		n += len(d.noticed)
	}
	return n
}

// bundlesOf returns, for each confirmed bundle of a cabinet, the position of
// its first event. The keys are the bundle ids that notices contain.
func bundlesOf(l energymarket.Ledger, cabinet string) map[string]int {
	positions := make(map[string]int)
	for _, b := range l.Confirmed() {
		if b.Cabinet == cabinet {
			positions[b.ID+"_"+b.Actor] = b.Position()
		}
	}
	return positions
}

// deadLetters returns the number of dead letters in a queue.
func (p *busProcess) deadLetters(t *testing.T, queue string) int {
	t.Helper()
	c := p.client(t, nil)
	defer func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) }()
	r, err := c.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	require.NoError(t, err)
	found, err := r.PeekMessages(t.Context(), 100, nil)
	require.NoError(t, err)
	return len(found)
}
