package domainclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// waitUntilDrained waits until the bus has no active message, because every message was completed.
func (m *market) waitUntilDrained() {
	m.t.Helper()
	require.Eventually(m.t, func() bool { return m.bus.Stats().Active == 0 }, patience, 5*time.Millisecond)
	require.Zero(m.t, m.bus.Stats().DeadLetters)
}

// startServing starts Serve, and returns once Serve has replied to a first request. Without that
// request, the first request of the test would also wait for the connection.
func (m *market) startServing(o domainclient.Options, h domainclient.Handler) {
	m.t.Helper()
	serve(m.t, o, func(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
		if r.IdempotencyID == "first" {
			return text("content"), nil
		}
		return h(ctx, r)
	})
	m.receiveContent(m.requestContent(testBundle{process: "first"}), "first")
}

func TestServe_RepliesWithTheContent(t *testing.T) {
	m := newMarket(t)
	o := m.options()
	answered := make(chan domainclient.Answer, 1)
	o.Answered = func(a domainclient.Answer) { answered <- a }
	serve(t, o, func(ctx context.Context, r *domainclient.Request) (io.Reader, error) {
		events, err := r.EventIDs(ctx)
		if err != nil {
			return nil, err
		}
		deadline, _ := ctx.Deadline()
		left := time.Until(deadline)
		if left > 20*time.Second || left < time.Second {
			return nil, fmt.Errorf("%s left", left)
		}
		return text(fmt.Sprint(r.IdempotencyID, r.ContentType, r.Format, r.Version, events)), nil
	})
	request := m.requestContent(testBundle{process: "b1_a1", events: []uuid.UUID{id(1), id(2)}, wait: 20 * time.Second})
	content := m.receiveContent(request, "b1_a1")
	require.Equal(t, fmt.Sprint("b1_a1", "PriceList", domainclient.FormatJSON, 1.0, []uuid.UUID{id(1), id(2)}), string(content))
	a := await(t, answered)
	require.Nil(t, a.Failure)
	require.Equal(t, request, a.Request.ID)
	require.EqualValues(t, len(content), a.Bytes)
	properties, err := m.exchange.NewBlobClient("b1_a1_data").GetProperties(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "application/json", *properties.ContentType)
	m.waitUntilDrained()
}

func TestServe_StreamsLargeContentInBlocks(t *testing.T) {
	m := newMarket(t)
	const size = 20<<20 + 1
	serve(t, m.options(), func(context.Context, *domainclient.Request) (io.Reader, error) {
		return io.LimitReader(endlessReader{}, size), nil
	})
	content := m.receiveContent(m.requestContent(testBundle{process: "b1_a1", format: contract.FormatXML}), "b1_a1")
	require.Len(t, content, size)
	properties, err := m.exchange.NewBlobClient("b1_a1_data").GetProperties(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "application/xml", *properties.ContentType)
}

type endlessReader struct{}

func (endlessReader) Read(p []byte) (int, error) { return copy(p, strings.Repeat("x", len(p))), nil }

func TestServe_ReplacesContentThatIsProducedAgain(t *testing.T) {
	m := newMarket(t)
	var made atomic.Int32
	serve(t, m.options(), func(context.Context, *domainclient.Request) (io.Reader, error) {
		return text(fmt.Sprint("version ", made.Add(1))), nil
	})
	require.Equal(t, "version 1", string(m.receiveContent(m.requestContent(testBundle{process: "b1_a1"}), "b1_a1")))
	require.Equal(t, "version 2", string(m.receiveContent(m.requestContent(testBundle{process: "b1_a1"}), "b1_a1")))
}

func TestServe_ReportsFailuresToTheHub(t *testing.T) {
	panicking := iotest.ErrReader(nil)
	for _, tc := range []struct {
		name, reason, description string
		content                   io.Reader
		err                       error
		panics                    bool
	}{
		{name: "what the handler calls by its name", err: &domainclient.Failure{Reason: domainclient.DatasetNotFound, Description: "never heard of it"}, reason: "DatasetNotFound", description: "never heard of it"},
		{name: "the same, wrapped", err: fmt.Errorf("so: %w", &domainclient.Failure{Reason: domainclient.DatasetNotAvailable, Description: "at night"}), reason: "DatasetNotAvailable", description: "at night"},
		{name: "any other error", err: errors.New("the database is away"), reason: "InternalError", description: "the database is away"},
		{name: "a panic", panics: true, reason: "InternalError", description: "the program that makes the content panicked; its log says more"},
		{name: "no content at all", reason: "InternalError", description: "the content is empty"},
		{name: "empty content", content: strings.NewReader(""), reason: "InternalError", description: "the content is empty"},
		{name: "content that breaks off", content: io.MultiReader(text("half"), iotest.ErrReader(io.ErrUnexpectedEOF)), reason: "InternalError", description: "write b1_a1_data: unexpected EOF"},
		{name: "content that panics half-way", content: io.MultiReader(io.LimitReader(endlessReader{}, 9<<20), panicReader{}), reason: "InternalError", description: "the program that makes the content panicked; its log says more"},
		{name: "content that panics when it is closed", content: panicCloser{text("all")}, reason: "InternalError", description: "the program that makes the content panicked; its log says more"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMarket(t)
			serve(t, m.options(), func(context.Context, *domainclient.Request) (io.Reader, error) {
				if tc.panics {
					panic(panicking)
				}
				return tc.content, tc.err
			})
			reason, description := m.receiveFailure(m.requestContent(testBundle{process: "b1_a1"}))
			require.Equal(t, tc.reason, reason)
			require.Equal(t, tc.description, description)
			m.waitUntilDrained()
		})
	}
}

type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("no") }

type panicCloser struct{ io.Reader }

func (panicCloser) Close() error { panic("no") }

func TestServe_ClosesTheContent(t *testing.T) {
	m := newMarket(t)
	closed := make(chan struct{})
	serve(t, m.options(), func(context.Context, *domainclient.Request) (io.Reader, error) {
		return closing{text("content"), func() { close(closed) }}, nil
	})
	m.receiveContent(m.requestContent(testBundle{process: "b1_a1"}), "b1_a1")
	await(t, closed)
}

type closing struct {
	io.Reader
	close func()
}

func (c closing) Close() error {
	c.close()
	return nil
}

func TestServe_EndsARequestWithItsTimeToLive(t *testing.T) {
	m := newMarket(t)
	answered := make(chan domainclient.Answer, 1)
	o := m.options()
	o.Answered = func(a domainclient.Answer) { answered <- a }
	m.startServing(o, func(ctx context.Context, _ *domainclient.Request) (io.Reader, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	await(t, answered)
	request := m.requestContent(testBundle{process: "b1_a1", wait: time.Second})
	reason, description := m.receiveFailure(request)
	require.Equal(t, "DatasetNotAvailable", reason)
	require.Equal(t, "the content was not ready in time", description)
	require.Less(t, await(t, answered).Took, contract.ReplyWithin)
}

func TestServe_RepliesInSpiteOfAWrongClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			m := newMarket(t)
			o := m.options()
			o.Now = func() time.Time { return time.Now().Add(off) }
			serve(t, o, func(ctx context.Context, _ *domainclient.Request) (io.Reader, error) {
				return text("content"), ctx.Err()
			})
			require.Equal(t, "content", string(m.receiveContent(m.requestContent(testBundle{process: "b1_a1"}), "b1_a1")))
		})
	}
}

func TestServe_LimitsConcurrentRequests(t *testing.T) {
	m := newMarket(t)
	o := m.options()
	o.RequestsAtOnce = 4
	began, finish := make(chan struct{}, 8), make(chan struct{})
	var now, most atomic.Int32
	serve(t, o, func(context.Context, *domainclient.Request) (io.Reader, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		began <- struct{}{}
		<-finish
		now.Add(-1)
		return text("content"), nil
	})
	var requests []string
	for i := range 8 {
		requests = append(requests, m.requestContent(testBundle{process: fmt.Sprint("b", i)}))
	}
	for range 4 {
		await(t, began)
	}
	close(finish)
	for i, request := range requests {
		m.receiveContent(request, fmt.Sprint("b", i))
	}
	require.EqualValues(t, 4, most.Load())
	m.waitUntilDrained()
}

func TestServe_ProducesContentOnceForConcurrentRequests(t *testing.T) {
	m := newMarket(t)
	var made atomic.Int32
	began, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	serve(t, m.options(), func(context.Context, *domainclient.Request) (io.Reader, error) {
		made.Add(1)
		once.Do(func() { close(began) })
		<-finish
		return text("content"), nil
	})
	first := m.requestContent(testBundle{process: "b1_a1"})
	await(t, began)
	second := m.requestContent(testBundle{process: "b1_a1"})
	// The second request has either joined the first one or arrives slightly later. In both cases,
	// each request gets its reply, and no request deletes blocks that the other has uploaded.
	close(finish)
	m.receiveContent(first, "b1_a1")
	m.receiveContent(second, "b1_a1")
	require.LessOrEqual(t, made.Load(), int32(2))
	m.waitUntilDrained()
}

func TestServe_ContinuesWhenTheJoinedRequestExpires(t *testing.T) {
	m := newMarket(t)
	began := make(chan struct{})
	var made atomic.Int32
	m.startServing(m.options(), func(ctx context.Context, _ *domainclient.Request) (io.Reader, error) {
		if made.Add(1) == 1 {
			close(began)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return text("content"), nil
	})
	first := m.requestContent(testBundle{process: "b1_a1", wait: 2 * time.Second})
	await(t, began)
	second := m.requestContent(testBundle{process: "b1_a1", wait: 20 * time.Second})
	reason, _ := m.receiveFailure(first)
	require.Equal(t, "DatasetNotAvailable", reason)
	m.receiveContent(second, "b1_a1")
	m.waitUntilDrained()
}

func TestServe_DeadLettersOnlyAnUnreadableRequest(t *testing.T) {
	m := newMarket(t)
	serve(t, m.options(), func(context.Context, *domainclient.Request) (io.Reader, error) { return text("content"), nil })
	session := "s1"
	for name, body := range map[string]string{"garbage": "\xff\xff", "nothing": "", "too much": strings.Repeat("x", 65<<10)} {
		m.send("charges", &azservicebus.Message{SessionID: &session, MessageID: &name, Body: []byte(body)})
	}
	m.receiveContent(m.requestContent(testBundle{process: "b1_a1"}), "b1_a1")
	dead, err := m.client.NewReceiverForQueue("charges", &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	require.NoError(t, err)
	why := map[string]string{}
	for len(why) < 3 {
		letters, err := dead.ReceiveMessages(t.Context(), 3, nil)
		require.NoError(t, err)
		for _, l := range letters {
			require.Equal(t, "Unreadable", *l.DeadLetterReason)
			why[l.MessageID] = *l.DeadLetterErrorDescription
			require.NoError(t, dead.CompleteMessage(t.Context(), l, nil))
		}
	}
	require.NoError(t, dead.Close(t.Context()))
	require.Contains(t, why["garbage"], "no DataBundleRequestContract")
	require.Equal(t, "RequestId is missing, so the session for the reply is unknown", why["nothing"])
	require.Equal(t, "66560 bytes are not a request", why["too much"])
	m.waitUntilDrained()
}

func TestServe_ContinuesAfterTheClientPanics(t *testing.T) {
	m := newMarket(t)
	poison := "poison"
	short := 2 * time.Second
	m.send("charges", &azservicebus.Message{
		SessionID: &poison, TimeToLive: &short, ApplicationProperties: map[string]any{"DeadLetterReason": int64(1)},
	})
	o := m.options()
	o.RequestsAtOnce = 2
	serve(t, o, func(context.Context, *domainclient.Request) (io.Reader, error) { return text("content"), nil })
	for range 5 {
		m.receiveContent(m.requestContent(testBundle{process: "b1_a1"}), "b1_a1")
	}
}

func TestServe_LeavesTheRequestToAnotherProcessWhenStopped(t *testing.T) {
	m := newMarket(t)
	began := make(chan struct{})
	stop := serve(t, m.options(), func(ctx context.Context, _ *domainclient.Request) (io.Reader, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	request := m.requestContent(testBundle{process: "b1_a1"})
	await(t, began)
	require.NoError(t, stop())
	serve(t, m.options(), func(context.Context, *domainclient.Request) (io.Reader, error) { return text("content"), nil })
	require.Equal(t, "content", string(m.receiveContent(request, "b1_a1")))
	m.waitUntilDrained()
}

func TestServe_ContinuesAfterConnectionsBreak(t *testing.T) {
	m := newMarket(t)
	serve(t, m.options(), func(context.Context, *domainclient.Request) (io.Reader, error) { return text("content"), nil })
	for i := range 3 {
		process := fmt.Sprint("b", i)
		m.receiveContent(m.requestContent(testBundle{process: process}), process)
		m.waitUntilDrained()
		m.bus.DropConnections()
		m.busHub = newHub(t, m.bus)
	}
	m.receiveContent(m.requestContent(testBundle{process: "b4"}), "b4")
}

func TestServe_FailsIfTheQueueDoesNotExist(t *testing.T) {
	m := newMarket(t)
	o := m.options()
	o.Origin = "Weather"
	err := newClient(t, o).Serve(t.Context(), func(context.Context, *domainclient.Request) (io.Reader, error) { return text("x"), nil })
	require.ErrorContains(t, err, "serve weather: ")
	o.Exchange = nil
	require.ErrorContains(t, newClient(t, o).Serve(t.Context(), nil), "no Options.Exchange")
	nameless, err := domainclient.New(domainclient.Options{Connect: connectTo(m.bus), Exchange: m.exchange})
	require.NoError(t, err)
	require.ErrorContains(t, nameless.Serve(t.Context(), nil), "set Options.Origin")
	_, err = domainclient.New(domainclient.Options{})
	require.ErrorContains(t, err, "no Options.Connect")
}
