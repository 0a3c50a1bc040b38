package console_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// unreachable is a domain to which no notice can be delivered.
type unreachable struct{}

func (unreachable) Notify(context.Context, domain.Notice) error {
	return errors.New("its queue is away")
}

// A silentDomain replies to a content request only after release is closed, and then with a
// failure.
type silentDomain struct {
	mu        sync.Mutex
	requested chan struct{} // receives an element for each request; if nil, requests fail immediately
	release   chan struct{}
	failure   domain.ContentFailure // failure that the domain reports; zero for a default failure
}

func (d *silentDomain) hold() (requested <-chan struct{}, release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requested, d.release = make(chan struct{}, 10), make(chan struct{})
	return d.requested, sync.OnceFunc(func() { close(d.release) })
}

func (d *silentDomain) Request(ctx context.Context, _ hub.ContentRequest) (hub.Reply, error) {
	d.mu.Lock()
	requested, release := d.requested, d.release
	d.mu.Unlock()
	if requested != nil {
		requested <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
			return hub.Reply{}, ctx.Err()
		}
	}
	if d.failure != (domain.ContentFailure{}) {
		return hub.Reply{Failure: d.failure}, nil
	}
	return hub.Reply{Failure: domain.ContentFailure{Reason: "<no-data>", Text: `its "database" is away`}}, nil
}

func TestMailbox_ShowsThatADomainFailsAndWhenItIsAskedNext(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "Charges", 2)
	_, err := b.hub.Peek(t.Context(), hub.PeekRequest{Actor: parseActor(t, actor)})
	require.Equal(t, domain.Unavailable, domain.KindOf(err))
	a := b.get("/console/mailboxes/" + actor).wants(http.StatusOK)
	require.Contains(t, a.text(), `Domain fails 1 failure: <no-data> its "database" is away Failures in a row 1 Next attempt with the next Peek of the actor`)
	require.Contains(t, a.text(), "a Peek asks the domain for it")
	require.NotContains(t, a.body, "<no-data>")

	requested, release := b.domain.hold()
	defer release()
	var peeking sync.WaitGroup
	peeking.Go(func() {
		_, _ = b.hub.Peek(t.Context(), hub.PeekRequest{Actor: parseActor(t, actor), By: time.Now().Add(48 * time.Hour)})
	})
	<-requested
	require.Contains(t, b.get("/console/mailboxes/"+actor).text(), "Next attempt under way on this node, for 1 Peek; the domain has ")
	release()
	peeking.Wait()
	require.Contains(t, b.get("/console/mailboxes/"+actor).text(), "Failures in a row 2 Next attempt with the next Peek")
}

func TestMailbox_ShowsNoticesThatWait(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 1)
	require.Contains(t, b.get("/console/mailboxes/"+actor).text(), "No notice waits")
	id, err := domain.ParseSubscriptionID("0190b5c0-0000-7000-8000-000000000001")
	require.NoError(t, err)
	_, err = b.store.RequestDequeues(t.Context(), parseActor(t, actor), id)
	require.NoError(t, err)
	b.peekAs(actor, sampleBundle)
	b.dequeue(sampleBundle)
	a := b.get("/console/mailboxes/" + actor).wants(http.StatusOK)
	require.Contains(t, a.text(), "Waiting 1 Oldest")
	require.Contains(t, a.text(), "This node could not deliver none")
	require.Contains(t, a.text(), sampleBundle+" subscriptions of the actor timeseries TimeSeries")
	require.Contains(t, a.body, `href="`+bundlePath+`"`)

	ctx, cancel := context.WithCancel(t.Context())
	var delivering sync.WaitGroup
	delivering.Go(func() { _ = b.noticeRelay.Run(ctx) })
	require.Eventually(t, func() bool { return b.noticeRelay.Stuck().Notices > 0 }, time.Minute, time.Millisecond)
	cancel()
	delivering.Wait()
	require.Contains(t, b.get("/console/mailboxes/"+actor).text(), "This node could not deliver 1 since ")
}

func TestMailbox_ExplainsTheEffectOfItsGates(t *testing.T) {
	b := openSignedIn(t)
	b.save(actor, "TimeSeries", 1)
	require.Contains(t, b.get("/console/mailboxes/"+actor).text(), "the next Peek opens one with the first events that wait")
	b.peek(actor)
	require.Contains(t, b.get("/console/mailboxes/"+actor).text(), "each Peek returns it until the actor dequeues it")
	require.NoError(t, b.options.Operator.Freeze(t.Context(), parseActor(t, actor), hub.AdminAction{Who: "kim", Why: "a test"}))
	require.Contains(t, b.get("/console/mailboxes/"+actor).text(), "Peek and Dequeue fail until it is thawed")
}
