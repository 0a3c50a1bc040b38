package servicebus

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"golang.org/x/sync/semaphore"

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
	senders map[string]*sender // by queue
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
		l.current = &client{bus: bus, senders: make(map[string]*sender)}
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

// A sender is what all who send to one queue share. What may change is guarded by
// the line's mu.
type sender struct {
	*azservicebus.Sender
	queue   string
	opening *semaphore.Weighted // held by the one who may open the link
	users   int
	lost    bool // the bus has ended its link for good
}

// sender returns the sender for a queue. Making one makes no call. Each sender needs
// one release.
func (l *line) sender(c *client, queue string) (*sender, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := c.senders[queue]
	if s == nil {
		made, err := c.bus.NewSender(queue, nil)
		if err != nil {
			return nil, err
		}
		s = &sender{Sender: made, queue: queue, opening: semaphore.NewWeighted(1)}
		c.senders[queue] = s
	}
	s.users++
	return s, nil
}

// release ends a use of s. If its link is lost, the next one to send to the queue
// gets another sender. The client itself would for ever use a link that the bus has
// ended for good, as it does when a queue is deleted, also when the queue is there
// again. The old sender is closed once nobody uses it: one that is closed while it
// opens a link leaves that behind.
func (l *line) release(ctx context.Context, c *client, s *sender, lost bool) {
	l.mu.Lock()
	s.users--
	if lost {
		s.lost = true
		if c.senders[s.queue] == s {
			delete(c.senders, s.queue)
		}
	}
	unused := s.lost && s.users == 0
	l.mu.Unlock()
	if unused {
		_ = outlasting(ctx, farewell, s.Close) // there is nobody at the other end
	}
}

// link sees to it that the link is open, or says why it cannot be opened. One caller
// at a time does so. When an opening fails, all who have waited for it within the
// client open a link each, one after the other, and the client forgets all but the
// last, with the goroutines that renew their tokens. There they also wait for as long
// as it takes; here they leave when ctx ends. Over an open link this makes no call.
//
// A link that is lost under those who send is opened anew by the client, which sees
// to it that one of them does so.
func (s *sender) link(ctx context.Context) error {
	if err := s.opening.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.opening.Release(1)
	_, err := s.NewMessageBatch(ctx, nil)
	return err
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
	var t trouble
	defer func() { l.give(ctx, c, t.replace) }()
	s, err := l.sender(c, queue)
	if err == nil {
		defer func() { l.release(ctx, c, s, t.relink) }()
		err = s.link(ctx) // first, so that a failure to open it is known for one
	}
	kind := domain.Unavailable
	if err == nil {
		kind = domain.Uncertain
		err = s.SendMessage(ctx, m, nil)
	}
	if err == nil {
		return false, nil
	}
	t = troubleOf(err)
	if !t.again || t.once { // the bus has said no
		kind = domain.Unavailable
	}
	return t.again, t.errorf(kind, "send to queue %s", queue)
}
