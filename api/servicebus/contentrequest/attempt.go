package contentrequest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"go.opentelemetry.io/otel/trace"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
	"github.com/messagehub/messagehub/api/tracing"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// An attempt is one request together with the session in which its reply arrives.
type attempt struct {
	requests *Requests
	origin   domain.Origin
	queues   contract.Queues
	id       string // id of the request, which is also the session id of its reply
	process  string // id that the hub and the domain use for the bundle
	message  *azservicebus.Message

	sent   chan error // receives nil once the bus has accepted the request
	result chan replyResult

	mu           sync.Mutex
	interruption error // reason why the session is not open; nil while it is open
}

// A replyResult is the reply, or the reason why no reply can arrive.
type replyResult struct {
	reply hub.Reply
	err   error
}

// run sends the request and listens until the reply arrives or ctx ends. It settles every received
// message before it returns.
func (a *attempt) run(ctx context.Context) {
	a.setInterruption(errors.New("the bus has not opened the session for the reply in time; check that it is up"))
	var sending sync.WaitGroup
	sending.Go(func() { a.sent <- a.requests.requests.Send(a.requests.tasks.Context(), a.queues.Request, a.message) }) //nolint:contextcheck // a send outlasts its request
	a.listenForReply(ctx)
	sending.Wait()
}

// awaitReply returns the reply, or the reason why no reply arrived.
func (a *attempt) awaitReply(ctx context.Context) (hub.Reply, error) {
	sent, isSent := a.sent, false
	for {
		select {
		case err := <-sent:
			if err != nil {
				return hub.Reply{}, domain.Errorf(domain.Unavailable, "ask domain %s: %w", a.origin, err)
			}
			sent, isSent = nil, true
		case r := <-a.result:
			return r.reply, r.err
		case <-a.requests.tasks.Context().Done():
			return hub.Reply{}, errClosing
		case <-ctx.Done():
			select {
			case r := <-a.result: // the reply arrived together with the deadline
				return r.reply, r.err
			default:
				return hub.Reply{}, a.overdueError(ctx.Err(), isSent)
			}
		}
	}
}

// overdueError returns the error for a missing reply. It blames the bus if the bus has not accepted
// the request or the session cannot be opened. It blames neither the bus nor the domain if the
// caller cancelled the request, and blames the domain in all remaining cases.
func (a *attempt) overdueError(end error, isSent bool) error {
	a.mu.Lock()
	why := a.interruption
	a.mu.Unlock()
	switch {
	case errors.Is(end, context.Canceled):
	case !isSent:
		return domain.Errorf(domain.Unavailable, "ask domain %s: the bus has not accepted the request in time; check that it is up", a.origin)
	case why != nil:
		return domain.Errorf(domain.Unavailable, "ask domain %s: %w", a.origin, why)
	}
	return fmt.Errorf("ask domain %s: no reply: %w", a.origin, end)
}

// setInterruption stores the reason why the session is not open; nil means that the session is
// open.
func (a *attempt) setInterruption(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.interruption = why
}

// listenForReply opens the session of the reply, and reopens the session whenever it is lost.
func (a *attempt) listenForReply(ctx context.Context) {
	for try := 0; ; try++ {
		if a.listenOnce(ctx, try) || !a.pauseBefore(ctx, try) {
			return
		}
	}
}

// listenOnce opens the session and listens for the reply; try is the number of earlier tries. It
// returns true if no further message is expected.
func (a *attempt) listenOnce(ctx context.Context, try int) (done bool) {
	connection := busclient.LeastUsed(a.requests.replies)
	client, err := connection.Acquire()
	if err != nil {
		a.result <- replyResult{err: domain.Errorf(domain.Unavailable, "%w", err)}
		return true
	}
	defer connection.Release(ctx, client)
	session, err := a.acceptSession(client) //nolint:contextcheck // see package busclient
	if err != nil {
		failure := busclient.Classify(err)
		if failure.ReplaceClient {
			connection.Replace(ctx, client)
		}
		err = domain.Errorf(domain.Unavailable, "listen for replies on queue %s: %w", a.queues.Reply, failure)
		a.setInterruption(err)
		done = !failure.Retry || failure.RetryOnce && try > 0
		if done {
			a.result <- replyResult{err: err}
		}
		return done
	}
	a.setInterruption(nil)
	done = a.listenTo(ctx, session)
	_ = busclient.Outlast(ctx, busclient.CloseTimeout, session.Close) // if Close fails, the bus closes the session when its lock expires
	if !done {
		connection.Replace(ctx, client)
	}
	return done
}

func (a *attempt) acceptSession(c *busclient.Client) (*azservicebus.SessionReceiver, error) {
	ctx, cancel := context.WithTimeout(a.requests.tasks.Context(), busclient.SendTimeout)
	defer cancel()
	return c.AcceptSessionForQueue(ctx, a.queues.Reply, a.id, nil)
}

// listenTo receives messages of the session until the reply arrives or ctx ends. It returns false
// if the session is lost.
func (a *attempt) listenTo(ctx context.Context, s *azservicebus.SessionReceiver) (done bool) {
	for ctx.Err() == nil {
		m, err := busclient.ReceiveOne(ctx, s)
		switch {
		case m != nil:
			c := a.classifyMessage(m)
			if c.counts {
				tracing.AddLinks(trace.SpanFromContext(ctx), tracing.FromProperties(m.ApplicationProperties))
				a.result <- replyResult{reply: c.reply}
			}
			a.settleReply(ctx, s, m, c)
			if c.counts {
				a.drainReplies(ctx, s)
				return true
			}
		case busclient.IsPanic(err): // Microsoft's client panics on a property of an unexpected type, which any sender can set
			c := newMalformed("it has a property DeadLetterReason or DeadLetterErrorDescription that is no string; leave it out")
			a.result <- replyResult{reply: c.reply}
			a.countRefused(c)
			return true
		case ctx.Err() == nil:
			a.setInterruption(errors.New("the session for the reply was lost, and not opened again in time; check that the bus is up"))
			return false
		}
	}
	return true
}

// drainReplies settles duplicates of the reply that have already arrived.
func (a *attempt) drainReplies(ctx context.Context, s *azservicebus.SessionReceiver) {
	const limit, moment = 8, 20 * time.Millisecond // moment is the assumed duration of a round trip to the bus
	for range limit {
		var m *azservicebus.ReceivedMessage
		_ = busclient.Outlast(ctx, moment, func(ctx context.Context) (err error) {
			m, err = busclient.ReceiveOne(ctx, s)
			return err
		})
		if m == nil {
			return
		}
		a.settleReply(ctx, s, m, a.classifyMessage(m))
	}
}

// settleTimeout limits the settlement of a message: after 2 seconds, the client retries only
// rarely.
const settleTimeout = 2 * time.Second

// settleReply completes a reply, and dead-letters any other message. If the settlement fails, the
// message remains in its session until it expires. No receiver opens this session again.
func (a *attempt) settleReply(ctx context.Context, s *azservicebus.SessionReceiver, m *azservicebus.ReceivedMessage, c classification) {
	settling, span := a.requests.startSettling(ctx, a.queues.Reply, m.MessageID, c.refusal)
	defer span.End()
	err := busclient.Outlast(settling, settleTimeout, func(ctx context.Context) error {
		if c.refusal == "" {
			return s.CompleteMessage(ctx, m, nil)
		}
		return s.DeadLetterMessage(ctx, m, &azservicebus.DeadLetterOptions{Reason: &c.refusal, ErrorDescription: &c.description})
	})
	if c.refusal != "" {
		a.countRefused(c)
	}
	if err != nil {
		a.logger().Info("a reply could not be settled, and stays until it expires", "error", err)
	}
}

func (a *attempt) countRefused(c classification) {
	a.requests.metrics.countRefused(a.origin, c.refusal)
	a.logger().Warn("a domain has sent an unusable reply", "reason", c.refusal, "description", c.description)
}

func (a *attempt) logger() *slog.Logger {
	return a.requests.opts.Logger.With("domain", a.origin.String(), "queue", a.queues.Reply, "request_id", a.id, "process_id", a.process)
}

// pauseBefore waits before try n, for up to about 2 s. It does not wait before try 0. It returns
// false when ctx ends.
func (a *attempt) pauseBefore(ctx context.Context, n int) bool {
	const first, longest = 50 * time.Millisecond, 2 * time.Second
	if n == 0 {
		return ctx.Err() == nil
	}
	long := min(first<<min(n-1, 10), longest)
	jitter := 0.75 + a.requests.opts.Random()/2 // without jitter, attempts that lost the same connection would all retry at the same time
	return busclient.Sleep(ctx, time.Duration(float64(long)*jitter))
}
