package servicebus

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/domain"
)

// Every call to the client gets a context of our own, which ends after one of
// these. The client cannot be interrupted without harm: a caller that leaves while
// a link is being opened would cost everybody the connection, and a message that is
// settled too late comes again.
const (
	patience = 20 * time.Second // to open links, and to send over them
	settling = 2 * time.Second  // to settle a message; before it tries again, the client would wait longer
	farewell = 5 * time.Second  // to close what was opened
)

// A line is a connection to the bus, opened when it is first needed. It is replaced
// when it breaks rather than mended: whoever comes next gets another client, perhaps
// with another key, and the old one is closed once nobody uses it.
type line struct {
	open   func() (*azservicebus.Client, error)
	logger *slog.Logger

	mu      sync.Mutex
	current *client // nil until it is needed
	users   int     // of all clients
}

// leastUsed returns the line with the fewest users, and of those the first, so that
// none is opened that is not needed.
func leastUsed(lines []*line) *line {
	users := func(l *line) int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.users
	}
	return slices.MinFunc(lines, func(a, b *line) int { return cmp.Compare(users(a), users(b)) })
}

// A client is one client of the bus. What may change is guarded by the line's mu.
type client struct {
	bus     *azservicebus.Client
	senders map[string]*azservicebus.Sender // by queue
	users   int
	retired bool
}

// take returns the client in use. Each take needs one give.
func (l *line) take() (*client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == nil {
		bus, err := l.open()
		if err != nil {
			return nil, domain.Errorf(domain.Unavailable, "no client for Service Bus could be made; check its settings: %w", err)
		}
		l.current = &client{bus: bus, senders: make(map[string]*azservicebus.Sender)}
	}
	l.current.users++
	l.users++
	return l.current, nil
}

// give ends a use of c, and says whether it is to be replaced.
func (l *line) give(ctx context.Context, c *client, replace bool) {
	l.mu.Lock()
	c.users--
	l.users--
	if replace {
		l.retire(c)
	}
	unused := c.retired && c.users == 0
	l.mu.Unlock()
	if unused {
		c.close(ctx)
	}
}

func (l *line) retire(c *client) {
	if !c.retired {
		l.logger.Info("the connection to Service Bus is being replaced")
	}
	c.retired = true
	if l.current == c {
		l.current = nil
	}
}

// close closes the client in use, for those who still have it as well.
func (l *line) close(ctx context.Context) {
	l.mu.Lock()
	c := l.current
	l.current = nil
	l.mu.Unlock()
	if c != nil {
		c.close(ctx)
	}
}

func (c *client) close(ctx context.Context) {
	_ = outlasting(ctx, farewell, c.bus.Close) // it always says that this went well
}

// outlasting calls f with a time of its own, although ctx may have ended.
func outlasting(ctx context.Context, long time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), long)
	defer cancel()
	return f(ctx)
}

// sender returns the sender for a queue. Making one makes no call.
func (l *line) sender(c *client, queue string) (*azservicebus.Sender, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := c.senders[queue]; s != nil {
		return s, nil
	}
	s, err := c.bus.NewSender(queue, nil)
	if err == nil {
		c.senders[queue] = s
	}
	return s, err
}

// forget has the next one to send to a queue open another link. The client itself
// would for ever use one that the bus has ended for good, as it does when a queue is
// deleted, also when the queue is there again.
func (l *line) forget(ctx context.Context, c *client, queue string, s *azservicebus.Sender) {
	l.mu.Lock()
	first := c.senders[queue] == s
	if first {
		delete(c.senders, queue)
	}
	l.mu.Unlock()
	if first {
		_ = outlasting(ctx, farewell, s.Close) // there is nobody at the other end
	}
}

// send returns once the bus has accepted m, or with an Unavailable error if it has
// not, or with an Uncertain one. A connection or link may have died since it was last
// used: only another one can tell whether the bus is there, so there is a second try.
func (l *line) send(ctx context.Context, queue string, m *azservicebus.Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again, first := l.sendOnce(ctx, queue, m)
	if first == nil || !again || ctx.Err() != nil {
		return first
	}
	_, second := l.sendOnce(ctx, queue, m)
	if second != nil && domain.KindOf(first) == domain.Uncertain {
		return first // which the second try has not undone
	}
	return second
}

func (l *line) sendOnce(ctx context.Context, queue string, m *azservicebus.Message) (again bool, err error) {
	c, err := l.take()
	if err != nil {
		return false, err
	}
	replace := false
	defer func() { l.give(ctx, c, replace) }()
	s, err := l.sender(c, queue)
	if err == nil {
		_, err = s.NewMessageBatch(ctx, nil) // opens the link, so that a failure to do so is known for one
	}
	kind := domain.Unavailable
	if err == nil {
		kind = domain.Uncertain
		err = s.SendMessage(ctx, m, nil)
	}
	if err == nil {
		return false, nil
	}
	t := troubleOf(err)
	replace = t.replace
	if t.relink {
		l.forget(ctx, c, queue, s)
	}
	if !t.again || t.once { // the bus has said no
		kind = domain.Unavailable
	}
	return t.again, t.errorf(kind, "send to queue %s", queue)
}
