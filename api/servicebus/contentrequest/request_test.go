package contentrequest_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contentrequest"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/api/servicebus/internal/bustest"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

const uri = "https://account.blob.example/messagehub-exchange/some_data"

func one(m *azservicebus.Message) []*azservicebus.Message { return []*azservicebus.Message{m} }

func TestRequest_ReturnsTheContentOfTheDomain(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		serve(t, n, func(q receivedRequest) []*azservicebus.Message { return one(q.content(uri)) })
		r := newRequests(t, n)
		for range 3 {
			reply, err := sendRequest(t, r, aRequest())
			require.NoError(t, err)
			require.Equal(t, hub.Reply{URI: uri}, reply)
		}
		require.NoError(t, r.Close(t.Context()))
		require.Zero(t, n.Stats().Active, "replies are completed")
		require.Zero(t, n.Stats().DeadLetters)
	})(t)
}

func TestRequest_ReturnsTheReasonOfADomainsFailure(t *testing.T) {
	for _, tc := range []struct {
		reason       int32
		text         string
		want, saying string
	}{
		{0, "nothing known of it", "dataset-not-found", "nothing known of it"},
		{1, "", "dataset-not-available", ""},
		{15, "two\nlines\x1b[31m", "internal-error", "two lines [31m"},
		{7, "a number of tomorrow", "internal-error", "a number of tomorrow"},
		{-1, strings.Repeat("å", 400), "internal-error", strings.Repeat("å", 250) + "…"},
	} {
		t.Run(strconv.Itoa(int(tc.reason)), bustest.InBubble(func(t *testing.T) {
			n := bustest.Open(t, embedded.Options{})
			serve(t, n, func(q receivedRequest) []*azservicebus.Message {
				return one(q.reply(&contract.DataBundleResponseContract{RequestId: q.RequestId, Reply: failure(tc.reason, tc.text)}))
			})
			reply, err := sendRequest(t, newRequests(t, n), aRequest())
			require.NoError(t, err)
			require.Equal(t, hub.Reply{Failure: domain.ContentFailure{Reason: tc.want, Text: tc.saying}}, reply)
		}))
	}
}

// A reply may contain its request id in each of the five formats that .NET writes. It has no
// idempotency id, because the original's domains set none.
func TestReply_MayNameItsRequestInAnyGUIDFormat(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		forms := map[string]func(d, n string) string{
			"D": func(d, _ string) string { return strings.ToUpper(d) },
			"N": func(_, n string) string { return n },
			"B": func(d, _ string) string { return "{" + d + "}" },
			"P": func(d, _ string) string { return "(" + d + ")" },
			"X": func(_, n string) string {
				bytes := make([]string, 8)
				for i := range bytes {
					bytes[i] = "0x" + n[16+2*i:18+2*i]
				}
				return "{0x" + n[:8] + ",0x" + n[8:12] + ",0x" + n[12:16] + ",{" + strings.Join(bytes, ",") + "}}"
			},
		}
		n := bustest.Open(t, embedded.Options{})
		form := forms["D"] // assigned only while no request is in flight
		serve(t, n, func(q receivedRequest) []*azservicebus.Message {
			id := form(q.RequestId, strings.ReplaceAll(q.RequestId, "-", ""))
			return one(q.reply(&contract.DataBundleResponseContract{RequestId: id, Reply: success(uri)}))
		})
		r := newRequests(t, n)
		for name := range forms {
			form = forms[name]
			reply, err := sendRequest(t, r, aRequest())
			require.NoError(t, err, name)
			require.Equal(t, uri, reply.URI, name)
		}
	})(t)
}

func TestReply_ToAnotherRequestIsDeadLettered(t *testing.T) {
	other := func(q receivedRequest, r *contract.DataBundleResponseContract) *azservicebus.Message {
		r.Reply = success("https://wrong.example")
		return q.reply(r)
	}
	for _, tc := range []struct {
		name, reason, description string
		reply                     func(receivedRequest) *azservicebus.Message
	}{
		{"of another id", "foreign-request", `its RequestId is "de305d54-75b4-431b-adb2-eb6b9e546014"`, func(q receivedRequest) *azservicebus.Message {
			return other(q, &contract.DataBundleResponseContract{RequestId: "de305d54-75b4-431b-adb2-eb6b9e546014"})
		}},
		{"of no id", "foreign-request", `its RequestId is ""`, func(q receivedRequest) *azservicebus.Message {
			return other(q, &contract.DataBundleResponseContract{})
		}},
		{"of another bundle", "foreign-bundle", `its RequestIdempotencyId is "another_bundle"; want the id in the request, "` + process, func(q receivedRequest) *azservicebus.Message {
			return other(q, &contract.DataBundleResponseContract{RequestId: q.RequestId, RequestIdempotencyId: "another_bundle"})
		}},
	} {
		t.Run(tc.name, bustest.InBubble(func(t *testing.T) {
			n := bustest.Open(t, embedded.Options{})
			d := newDomain(t, n, domain.TimeSeries)
			ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
			defer cancel()
			a := startRequest(ctx, newRequests(t, n), aRequest())
			q := d.nextRequest(t)
			d.send(t, tc.reply(q))
			dead := d.deadReply(t)
			require.Equal(t, tc.reason, *dead.DeadLetterReason)
			require.Contains(t, *dead.DeadLetterErrorDescription, tc.description)
			d.send(t, q.content(uri)) // the reply to the current request
			reply, err := a.wait()
			require.NoError(t, err)
			require.Equal(t, uri, reply.URI)
		}))
	}
}

func TestReply_ThatIsMalformedIsAFailureOfTheDomain(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		reply      func(receivedRequest) *azservicebus.Message
	}{
		{"garbage", "no DataBundleResponseContract", func(q receivedRequest) *azservicebus.Message { return q.raw([]byte{0xff, 0xff, 0xff}) }},
		{"nothing", "its body has 0 bytes", func(q receivedRequest) *azservicebus.Message { return q.raw(nil) }},
		{"too much", "its body has 70000 bytes", func(q receivedRequest) *azservicebus.Message { return q.raw(make([]byte, 70_000)) }},
		{"neither case", "neither Success nor Failure", func(q receivedRequest) *azservicebus.Message {
			return q.reply(&contract.DataBundleResponseContract{RequestId: q.RequestId})
		}},
		{"no URI", "its contentUri has 0 bytes", func(q receivedRequest) *azservicebus.Message { return q.content("") }},
		{"a very long URI", "its contentUri has 3000 bytes", func(q receivedRequest) *azservicebus.Message { return q.content(strings.Repeat("x", 3000)) }},
	} {
		t.Run(tc.name, bustest.InBubble(func(t *testing.T) {
			n := bustest.Open(t, embedded.Options{})
			d := serve(t, n, func(q receivedRequest) []*azservicebus.Message { return one(tc.reply(q)) })
			reply, err := sendRequest(t, newRequests(t, n), aRequest())
			require.NoError(t, err)
			require.Empty(t, reply.URI)
			require.Equal(t, "malformed-reply", reply.Failure.Reason)
			require.Contains(t, reply.Failure.Text, tc.text)
			dead := d.deadReply(t)
			require.Equal(t, "malformed-reply", *dead.DeadLetterReason)
			require.Equal(t, reply.Failure.Text, *dead.DeadLetterErrorDescription)
		}))
	}
}

// Some clients send a body in several parts.
func TestReply_MayHaveABodyInSeveralParts(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
		defer cancel()
		a := startRequest(ctx, newRequests(t, n), aRequest())
		q := d.nextRequest(t)
		body := q.content(uri).Body
		require.NoError(t, d.replies.SendAMQPAnnotatedMessage(ctx, &azservicebus.AMQPAnnotatedMessage{
			Properties: &azservicebus.AMQPAnnotatedMessageProperties{GroupID: q.message.ReplyToSessionID},
			Body:       azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{body[:10], body[10:]}},
		}, nil))
		reply, err := a.wait()
		require.NoError(t, err)
		require.Equal(t, uri, reply.URI)
	})(t)
}

func TestReply_ThatArrivesTwiceIsCompletedTwice(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		serve(t, n, func(q receivedRequest) []*azservicebus.Message {
			return []*azservicebus.Message{q.content(uri), q.content(uri), q.raw([]byte("rubbish"))}
		})
		r := newRequests(t, n)
		reply, err := sendRequest(t, r, aRequest())
		require.NoError(t, err)
		require.Equal(t, uri, reply.URI)
		require.NoError(t, r.Close(t.Context()))
		require.Zero(t, n.Stats().Active)
		require.EqualValues(t, 1, n.Stats().DeadLetters)
	})(t)
}

func TestReply_ThatIsLateDoesNotReachTheNextRequest(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		r := newRequests(t, n)
		ctx, leave := context.WithTimeout(t.Context(), longTimeout)
		first := startRequest(ctx, r, aRequest())
		slow := d.nextRequest(t)
		leave()
		_, err := first.wait()
		require.ErrorIs(t, err, context.Canceled)

		ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
		defer cancel()
		second := startRequest(ctx, r, aRequest())
		q := d.nextRequest(t)
		require.NotEqual(t, slow.RequestId, q.RequestId)
		require.Equal(t, slow.IdempotencyId, q.IdempotencyId)
		d.send(t, slow.content("https://late.example"))
		d.send(t, q.content(uri))
		reply, err := second.wait()
		require.NoError(t, err)
		require.Equal(t, uri, reply.URI)
	})(t)
}

// waitForRequest waits until the domain has received the request and the hub listens to the session
// of its reply. It returns the received request.
func waitForRequest(t *testing.T, d *simulatedDomain) receivedRequest {
	t.Helper()
	q := d.nextRequest(t)
	d.send(t, q.reply(&contract.DataBundleResponseContract{RequestId: "none"}))
	for *d.deadReply(t).DeadLetterReason != "foreign-request" {
	}
	return q
}

func TestRequest_BlamesTheDomainIfNoReplyArrives(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		ctx := newManualContext()
		a := startRequest(ctx, newRequests(t, n), aRequest())
		waitForRequest(t, d)
		ctx.end()
		_, err := a.wait()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, domain.Unknown, domain.KindOf(err))
		require.EqualError(t, err, "ask domain TimeSeries: no reply: context deadline exceeded")
	})(t)
}

func TestReply_InAnotherSessionIsIgnored(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		ctx := newManualContext()
		a := startRequest(ctx, newRequests(t, n), aRequest())
		q := waitForRequest(t, d)
		elsewhere, session := q.content(uri), "elsewhere"
		elsewhere.SessionID = &session
		d.send(t, elsewhere)
		nowhere := q.content(uri)
		nowhere.SessionID = nil
		require.Error(t, d.replies.SendMessage(t.Context(), nowhere, nil), "the bus refuses what has no session")
		ctx.end()
		_, err := a.wait()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})(t)
}

func TestManyRequestsShareAConnection(t *testing.T) {
	bustest.WithoutLeaks(t)
	const many = 100
	n := bustest.Open(t, embedded.Options{})
	serve(t, n, func(q receivedRequest) []*azservicebus.Message { return one(q.content("uri of " + q.IdempotencyId)) })
	r := newRequests(t, n, oneConnection)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			q := aRequest()
			q.Recipient = bustest.Must(domain.ParseActorID(strconv.Itoa(i)))
			reply, err := sendRequest(t, r, q)
			assert.NoError(t, err)
			assert.Equal(t, "uri of "+bundle.String()+"_"+strconv.Itoa(i), reply.URI)
		})
	}
	all.Wait()
	require.EqualValues(t, 3, n.Stats().Connections, "for requests, for replies, and the domain's own")
}

func TestRequest_OfEachNodeForOneBundleGetsAReply(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
		defer cancel()
		nodes := []*backgroundRequest{startRequest(ctx, newRequests(t, n), aRequest()), startRequest(ctx, newRequests(t, n), aRequest())}
		for range nodes {
			q := d.nextRequest(t)
			d.send(t, q.content("uri for "+q.RequestId))
		}
		first, err := nodes[0].wait()
		require.NoError(t, err)
		second, err := nodes[1].wait()
		require.NoError(t, err)
		require.NotEqual(t, first, second)
	})(t)
}

func TestRequest_IsRefusedAboveTheLimitOfADomain(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		r := newRequests(t, n, func(o *contentrequest.Options) { o.MaxRequests = 2 })
		ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
		defer cancel()
		first, second := startRequest(ctx, r, aRequest()), startRequest(ctx, r, aRequest())
		q1, q2 := d.nextRequest(t), d.nextRequest(t)
		_, err := sendRequest(t, r, aRequest())
		require.Equal(t, domain.Busy, domain.KindOf(err), "%v", err)
		require.ErrorContains(t, err, "2 requests are under way already")
		serveAs(t, n, domain.Aggregations, func(q receivedRequest) []*azservicebus.Message { return one(q.content(uri)) })
		other := aRequest()
		other.Origin = domain.Aggregations
		_, err = sendRequest(t, r, other)
		require.NoError(t, err, "others have room")
		d.send(t, q1.content(uri))
		d.send(t, q2.content(uri))
		for _, a := range []*backgroundRequest{first, second} {
			_, err := a.wait()
			require.NoError(t, err)
		}
	})(t)
}

func TestARequestNeedsTime(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		r := newRequests(t, n)
		endless := aRequest()
		endless.By = time.Time{}
		_, err := r.Request(context.Background(), endless)
		require.Equal(t, domain.Invalid, domain.KindOf(err), "%v", err)
		ctx, cancel := context.WithTimeout(context.Background(), 0)
		defer cancel()
		_, err = r.Request(ctx, aRequest())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		ctx, cancel = context.WithTimeout(context.Background(), longTimeout)
		cancel()
		_, err = r.Request(ctx, aRequest())
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, n.Stats().Connections, "nothing was sent")
	})(t)
}

func TestRequest_FailsForADomainWithoutQueues(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		q := aRequest()
		q.Origin = domain.Charges
		_, err := sendRequest(t, newRequests(t, bustest.Open(t, embedded.Options{})), q)
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.EqualError(t, err, "ask domain Charges: it has no queues; name them in the configuration")
	})(t)
}

func TestClose_EndsWaitingRequests(t *testing.T) {
	bustest.InBubble(func(t *testing.T) {
		n := bustest.Open(t, embedded.Options{})
		d := newDomain(t, n, domain.TimeSeries)
		r := newRequests(t, n)
		ctx, cancel := context.WithTimeout(t.Context(), longTimeout)
		defer cancel()
		a := startRequest(ctx, r, aRequest())
		d.nextRequest(t)
		require.NoError(t, r.Close(t.Context()))
		_, err := a.wait()
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		_, err = sendRequest(t, r, aRequest())
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.False(t, errors.Is(err, context.Canceled), "the caller has not left")
	})(t)
}
