package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/google/uuid"

	"github.com/messagehub/messagehub/api/servicebus"
	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
)

// An announcer is what a domain reaches the namespace with: the shipped client for
// domains, on a line of its own. It is accepted what the bus has taken.
type announcer struct {
	*party
	form   domainclient.Form
	queue  string // "": that with sessions
	line   *busLine
	client *domainclient.Client
	lives  int
}

func (p *party) newAnnouncer(form domainclient.Form, queue string) (*announcer, error) {
	a := &announcer{party: p, form: form, queue: queue}
	return a, a.begin()
}

// begin makes the client, which makes no connection yet.
func (a *announcer) begin() (err error) {
	a.lives++
	a.line = a.w.newBusLine(fmt.Sprintf("%s.%d", a.who, a.lives))
	a.client, err = domainclient.New(domainclient.Options{
		Origin: "Charges", Connect: a.w.connecting(a.line), Events: a.queue,
		Form: a.form, EventsPerMessage: 1 + a.d.n(3), Random: a.d,
	})
	return err
}

// end leaves nothing behind. A domain that dies closes nothing first.
func (a *announcer) end(dies bool) {
	if dies {
		a.line.dead.Store(true)
		a.line.cut()
	}
	a.w.closing(a.client.Close)
}

// closeWithin is how long the clients of a party may take to end.
const closeWithin = 5 * time.Second

func (w *world) closing(end func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), closeWithin)
	defer cancel()
	_ = end(ctx) // what was not closed in time ends with its line
}

func (w *world) newBusLine(who string) *busLine {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &busLine{w: w, who: who}
	w.lines = append(w.lines, l)
	return l
}

// connecting makes clients whose connections lie on a line.
func (w *world) connecting(l *busLine) domainclient.Connect {
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(w.bus.ConnectionString(""), &azservicebus.ClientOptions{
			RetryOptions: servicebus.ClientRetries(),
			NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				return l.dial(ctx)
			},
		})
	}
}

// persist sends events until the bus has them. It reports false if the world ends.
func (a *announcer) persist(batch []event) bool {
	events := make([]domainclient.Event, len(batch))
	for i := range batch {
		e := &batch[i]
		events[i] = domainclient.Event{
			ID: uuid.MustParse(e.ID), Recipient: e.Recipient, Origin: e.Origin, ContentType: e.ContentType, DocumentType: e.DocumentType,
			SupportsBundling: e.SupportsBundling, Weight: e.Weight, Payload: e.Payload,
		}
	}
	a.w.mailboxes.byBus.Store(true)
	return a.retryUntilSent("sends events to the bus", func(ctx context.Context) error {
		n, err := a.client.Send(ctx, events)
		if err == nil && n != len(events) {
			a.w.fail(fmt.Errorf("%d events were sent, and the bus is said to have %d", len(events), n))
		}
		return err
	})
}

// retryUntilSent tries to send something until that has worked. It reports false if the world
// ends.
func (a *announcer) retryUntilSent(what string, try func(context.Context) error) bool {
	const tries, hard = 100, 4
	for n := range tries {
		a.line.kind.Store(n >= hard)
		if _, ok := a.turn(what); !ok {
			return false
		}
		ctx, cancel := context.WithTimeout(a.w.ctx, time.Duration(5+a.d.n(60))*time.Second)
		doom := a.doom(n)
		err := try(ctx)
		cancel()
		a.w.leave(doom)
		if err == nil {
			return true
		}
		if !errors.Is(err, context.DeadlineExceeded) && a.w.ctx.Err() == nil {
			a.w.reached("a domain was told that it could not send")
		}
		a.w.reached("a domain did not know whether the bus has its events")
		if a.line.dead.Load() || a.d.n(3) == 0 {
			a.end(true)
			if err := a.begin(); err != nil {
				a.w.fail(err)
				return false
			}
			a.w.reached("a domain died while it sent")
		}
		if !a.pause(time.Duration(a.d.n(1000)) * time.Millisecond) {
			return false
		}
	}
	a.w.fail(fmt.Errorf("%s has tried %d times to send something, most of them while nothing was wrong", a.who, tries))
	return false
}

// doom is a turn in which the domain dies, somewhere in what it does now. It rarely
// comes.
func (a *announcer) doom(tries int) *turn {
	line := a.line
	t := &turn{who: line.who, what: "dies", goes: func() string {
		line.dead.Store(true)
		line.cut()
		return "is dead"
	}}
	if !a.w.calm && tries == 0 && a.d.n(6) == 0 {
		a.w.wait(t)
	}
	return t
}

// raw sends a message as it is.
func (a *announcer) raw(m *azservicebus.Message) bool {
	queue := a.queue
	if queue == "" {
		queue = contract.DataAvailableFIFO
	}
	return a.retryUntilSent("sends a message to the bus", func(ctx context.Context) (err error) {
		client, err := a.w.connecting(a.line)()
		if err != nil {
			return err
		}
		defer a.w.closing(client.Close) //nolint:contextcheck // it has a time of its own
		sender, err := client.NewSender(queue, nil)
		if err != nil {
			return err
		}
		return sender.SendMessage(ctx, m, nil)
	})
}

func eventsJSON(batch []event) []byte {
	text, err := json.Marshal(batch)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return text
}
