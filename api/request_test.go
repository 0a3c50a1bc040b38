package api_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/memory"
)

// A testDomain is a domain whose replies the test chooses.
type testDomain struct {
	exchange *memory.Exchange
	answer   func(ctx context.Context, r hub.ContentRequest) (hub.Reply, error)
}

func (d *testDomain) Request(ctx context.Context, r hub.ContentRequest) (hub.Reply, error) {
	return d.answer(ctx, r)
}

// serveContentRequests starts a server for which the domain TimeSeries produces content. By
// default, the content consists of the format and the version of the request.
func serveContentRequests(t *testing.T, change ...func(*api.Options, *hub.Options)) (*hubFixture, *testDomain) {
	t.Helper()
	d := &testDomain{exchange: memory.NewExchange()}
	d.answer = func(_ context.Context, r hub.ContentRequest) (hub.Reply, error) {
		content := `"` + string(r.Format) + " " + r.Version + `"`
		return hub.Reply{URI: d.exchange.Upload(hub.ProcessID(r.Bundle, r.Recipient), []byte(content))}, nil
	}
	f := serve(t, append(change, func(_ *api.Options, o *hub.Options) {
		o.Content = map[domain.Origin]domain.ContentMode{domain.TimeSeries: domain.Request}
		o.Requester, o.Exchange = d, d.exchange
	})...)
	t.Cleanup(f.hub.Close)
	return f, d
}

func TestBody_IsTheDomainsContentInTheRequestedFormat(t *testing.T) {
	for _, tc := range []struct{ path, contentType, body string }{
		{"/v1/peek", "application/json", `"json 1.0"`},
		{"/v1/peek?format=xml&version=2.5", "application/xml", `"xml 2.5"`},
		{"/api/peek", "application/xml", `"xml 1.0"`},
		{"/api/peek?responseformat=json&responseversion=3", "application/json", `"json 3.0"`},
	} {
		f, _ := serveContentRequests(t)
		f.post(202, newEvent(1))
		a := f.do("GET", tc.path, "").wants(200)
		require.Equal(t, tc.body, a.body)
		require.Equal(t, tc.contentType, a.header.Get("Content-Type"))
		id, tag := a.header.Get("MessageId"), a.header.Get("ETag")

		rest := f.do("GET", "/v1/bundles/"+id, "", "Range", "bytes=3-", "If-Range", tag).wants(206)
		require.Equal(t, tc.body[3:], rest.body)
		require.Equal(t, tag, f.do("GET", "/v1/peek", "").wants(200).header.Get("ETag"))
		require.Equal(t, tag, f.do("HEAD", "/v1/peek", "").wants(200).header.Get("ETag"))
		f.do("DELETE", "/v1/dequeue/"+id, "").wants(200)
	}
}

func TestDequeue_RefusesABundleWithoutContent(t *testing.T) {
	f, d := serveContentRequests(t, func(o *api.Options, _ *hub.Options) { o.IsOwnHost = isOwnHost })
	d.answer = func(context.Context, hub.ContentRequest) (hub.Reply, error) {
		return hub.Reply{Failure: domain.ContentFailure{Reason: "dataset-not-found", Text: "a word for operators"}}, nil
	}
	f.post(202, newEvent(1))
	p := f.do("GET", "/v1/peek?bundleId="+id(71), "").problem(503, "domain-failed")
	require.Contains(t, p.Detail, id(71))
	require.NotContains(t, p.Detail, "a word for operators")
	f.do("GET", "/v1/bundles/"+id(71), "").problem(503, "domain-failed")
	p = f.do("DELETE", "/v1/dequeue/"+id(71), "").problem(409, "conflict")
	require.Contains(t, p.Detail, "peek the bundle first")
	require.Contains(t, f.do("DELETE", "/api/dequeue?bundleId="+id(71), "").wants(400).body, "VALIDATION_EXCEPTION")
	shown := f.do("GET", "/v1/admin/queues/"+actor, "").wants(200).body
	require.Contains(t, shown, `"domain":{"answered":false,"failures":2,"reason":"dataset-not-found","text":"a word for operators"}`)
}

func TestPeek_RequestsDeletedContentAgain(t *testing.T) {
	for _, tc := range []struct {
		path   string
		status int
	}{{"/v1/peek", 503}, {"/api/peek", 204}} {
		f, d := serveContentRequests(t)
		var made atomic.Int32
		d.answer = func(_ context.Context, r hub.ContentRequest) (hub.Reply, error) {
			content := fmt.Sprintf(`"content %d"`, made.Add(1))
			return hub.Reply{URI: d.exchange.Upload(hub.ProcessID(r.Bundle, r.Recipient), []byte(content))}, nil
		}
		f.post(202, newEvent(1))
		first := f.do("GET", tc.path, "").wants(200)
		to, err := domain.ParseActorID(actor)
		require.NoError(t, err)
		next, err := f.store.NextUnacknowledged(t.Context(), to, domain.DefaultGroups().All())
		require.NoError(t, err)
		require.NoError(t, f.store.Delete(t.Context(), next.Open.Object))

		gone := f.do("GET", tc.path, "").wants(tc.status)
		require.Equal(t, "1", gone.header.Get("Retry-After"))
		f.logs.wait(t, `"problem":"content-gone"`)
		again := f.do("GET", tc.path, "").wants(200)
		require.Equal(t, `"content 2"`, again.body)
		require.Equal(t, first.header.Get("MessageId"), again.header.Get("MessageId"))
		require.NotEqual(t, first.header.Get("ETag"), again.header.Get("ETag"))
		rest := f.do("GET", "/v1/bundles/"+again.header.Get("MessageId"), "", "Range", "bytes=3-", "If-Range", first.header.Get("ETag")).wants(200)
		require.Equal(t, `"content 2"`, rest.body, "a download of the old content does not continue in the new one")
		f.do("DELETE", "/v1/dequeue/"+again.header.Get("MessageId"), "").wants(200)
	}
}

func TestADomainThatDoesNotAnswerDoesNotDelayOthers(t *testing.T) {
	f, d := serveContentRequests(t, func(o *api.Options, _ *hub.Options) { o.Limits.Peeks = 1 })
	asked, release := make(chan struct{}), make(chan struct{})
	answer := d.answer
	d.answer = func(ctx context.Context, r hub.ContentRequest) (hub.Reply, error) {
		close(asked)
		<-release
		return answer(ctx, r)
	}
	f.post(202, newEvent(1), newEvent(2, "origin", "Charges", "recipient", "another"))
	var peeking sync.WaitGroup
	peeking.Go(func() { f.do("GET", "/v1/peek", "").wants(200) })
	<-asked
	f.do("GET", "/v1/peek", "", "X-Actor-Id", "another").wants(200)
	close(release)
	peeking.Wait()
}

func TestContentRequest_HasTheRestOfTheDeadline(t *testing.T) {
	const deadline = 20 * time.Second
	f, d := serveContentRequests(t, func(o *api.Options, _ *hub.Options) { o.Deadline = deadline })
	f.post(202, newEvent(1))
	answer, asked := d.answer, make(chan time.Time, 1)
	d.answer = func(ctx context.Context, r hub.ContentRequest) (hub.Reply, error) {
		asked <- r.By
		return answer(ctx, r)
	}
	before := time.Now()
	f.do("GET", "/v1/peek", "").wants(200)
	require.WithinRange(t, <-asked, before.Add(deadline*8/10), time.Now().Add(deadline*95/100), "the hub needs some of it to hand out the content")
}
