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
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
)

// A busPublisher publishes events to the namespace with the shipped domain client, on a separate transport. An event
// counts as accepted once the bus has accepted it.
type busPublisher struct {
	*baseClient
	form      domainclient.Form
	queue     string // name of the queue; "" means the queue with sessions
	transport *busTransport
	client    *domainclient.Client
	starts    int
}

func (p *baseClient) newBusPublisher(form domainclient.Form, queue string) (*busPublisher, error) {
	a := &busPublisher{baseClient: p, form: form, queue: queue}
	return a, a.openClient()
}

// openClient creates the client. The client opens its connection with the first request.
func (a *busPublisher) openClient() (err error) {
	a.starts++
	a.transport = a.sim.newBusTransport(fmt.Sprintf("%s.%d", a.who, a.starts))
	a.client, err = domainclient.New(domainclient.Options{
		Origin: "Charges", Connect: a.sim.busConnector(a.transport), Events: a.queue,
		Form: a.form, EventsPerMessage: 1 + a.rng.IntN(3), Random: a.rng,
	})
	return err
}

// closeClient closes the client. If dies is true, the connections break first, as when the domain's process dies.
func (a *busPublisher) closeClient(dies bool) {
	if dies {
		a.transport.dead.Store(true)
		a.transport.cutConnections()
	}
	a.sim.closeInTime(a.client.Close)
}

// closeTimeout is the maximum time for closing the clients of a domain.
const closeTimeout = 5 * time.Second

func (sim *simulation) closeInTime(end func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sim.ctx), closeTimeout)
	defer cancel()
	_ = end(ctx) // if this times out, the client ends because its transport is cut
}

func (sim *simulation) newBusTransport(who string) *busTransport {
	sim.mu.Lock()
	defer sim.mu.Unlock()
	l := &busTransport{sim: sim, who: who}
	sim.env.busTransports = append(sim.env.busTransports, l)
	return l
}

// busConnector returns a function that creates bus clients on a transport.
func (sim *simulation) busConnector(l *busTransport) domainclient.Connect {
	return func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(sim.env.bus.ConnectionString(""), &azservicebus.ClientOptions{
			RetryOptions: servicebus.ClientRetries(),
			NewWebSocketConn: func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
				return l.dialBus(ctx)
			},
		})
	}
}

// publishEvents sends events until the bus has accepted them. It returns false if the simulation ends.
func (a *busPublisher) publishEvents(batch []sentData) bool {
	events := make([]domainclient.Event, len(batch))
	for i := range batch {
		e := &batch[i]
		events[i] = domainclient.Event{
			ID: uuid.MustParse(e.ID), Recipient: e.Recipient, Origin: e.Origin, ContentType: e.ContentType, DocumentType: e.DocumentType,
			SupportsBundling: e.SupportsBundling, Weight: e.Weight, Payload: e.Payload,
		}
	}
	a.sim.work.mailboxes.byBus.Store(true)
	return a.retryUntilSent("sends events to the bus", func(ctx context.Context) error {
		n, err := a.client.Send(ctx, events)
		if err == nil && n != len(events) {
			a.sim.Fail(fmt.Errorf("%d events were sent, but the client reports %d", len(events), n))
		}
		return err
	})
}

// retryUntilSent repeats try until it succeeds. It returns false if the simulation ends.
func (a *busPublisher) retryUntilSent(what string, try func(context.Context) error) bool {
	const tries, hard = 100, 4
	for n := range tries {
		a.transport.faultFree.Store(n >= hard)
		if _, ok := a.awaitTurn(what); !ok {
			return false
		}
		ctx, cancel := context.WithTimeout(a.sim.ctx, time.Duration(5+a.rng.IntN(60))*time.Second)
		doom := a.scheduleDeath(n)
		err := try(ctx)
		cancel()
		a.sim.Remove(doom)
		if err == nil {
			return true
		}
		if !errors.Is(err, context.DeadlineExceeded) && a.sim.ctx.Err() == nil {
			a.sim.MarkReached("a domain failed to send")
		}
		a.sim.MarkReached("a domain did not know whether the bus has its events")
		if a.transport.dead.Load() || a.rng.IntN(3) == 0 {
			a.closeClient(true)
			if err := a.openClient(); err != nil {
				a.sim.Fail(err)
				return false
			}
			a.sim.MarkReached("a domain died while it sent")
		}
		if !a.pause(time.Duration(a.rng.IntN(1000)) * time.Millisecond) {
			return false
		}
	}
	a.sim.Fail(fmt.Errorf("%s failed to send events in %d attempts, most of them without faults", a.who, tries))
	return false
}

// scheduleDeath sometimes gives the scheduler a turn that kills the domain during the current request. It returns the
// turn, or nil.
func (a *busPublisher) scheduleDeath(tries int) *scheduler.Turn {
	line := a.transport
	t := &scheduler.Turn{Who: line.who, What: "dies", Proceed: func() string {
		line.dead.Store(true)
		line.cutConnections()
		return "is dead"
	}}
	if !a.sim.FaultFree && tries == 0 && a.rng.IntN(6) == 0 {
		a.sim.Enqueue(t)
	}
	return t
}

// sendRaw sends a message unchanged.
func (a *busPublisher) sendRaw(m *azservicebus.Message) bool {
	queue := a.queue
	if queue == "" {
		queue = contract.DataAvailableFIFO
	}
	return a.retryUntilSent("sends a message to the bus", func(ctx context.Context) (err error) {
		client, err := a.sim.busConnector(a.transport)()
		if err != nil {
			return err
		}
		defer a.sim.closeInTime(client.Close) //nolint:contextcheck // closing has a timeout of its own
		sender, err := client.NewSender(queue, nil)
		if err != nil {
			return err
		}
		return sender.SendMessage(ctx, m, nil)
	})
}

func encodeEvents(batch []sentData) []byte {
	text, err := json.Marshal(batch)
	if err != nil {
		panic(err) // strings and numbers can be encoded
	}
	return text
}
