package simulate

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
)

// A busMisconfigurer temporarily breaks the queues between the hubs and a domain, one at a time: it disables, deletes or
// fills a queue, or changes its settings. Hubs must repeat the requests that are lost while a queue is broken.
type busMisconfigurer struct {
	baseClient
	admin  *admin.Client
	queues contract.Queues
}

func (sim *simulation) newBusMisconfigurer() (*busMisconfigurer, error) {
	k := &busMisconfigurer{baseClient: sim.newClient("keeper", 90), queues: contract.DefaultQueues(sim.plan.requestedOrigin.String())}
	var err error
	k.admin, err = admin.NewClientFromConnectionString(sim.env.bus.ConnectionString(""), &admin.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry: policy.RetryOptions{MaxRetries: -1},
		Transport: doerFunc(func(req *http.Request) (*http.Response, error) {
			answer := httptest.NewRecorder()
			sim.env.bus.Handler().ServeHTTP(answer, req)
			return answer.Result(), nil
		}),
	}})
	return k, err
}

// runUntil breaks and restores queues, until finish is closed or the faults end.
func (k *busMisconfigurer) runUntil(finish <-chan struct{}) {
	const actions = 20
	for range actions {
		if !k.pause(time.Duration(1+k.rng.IntN(15_000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		if k.sim.FaultFree {
			return
		}
		repair := k.breakQueue()
		k.sim.MarkReached("a queue was misconfigured")
		k.pause(time.Duration(1+k.rng.IntN(25)) * time.Second)
		k.runAtOnce(repair)
	}
}

// runAtOnce runs a function in one step of the simulation, or when the simulation ends.
func (k *busMisconfigurer) runAtOnce(act func() (string, error)) {
	done := make(chan struct{})
	t := &scheduler.Turn{Who: k.who, What: "comes by", Proceed: func() string {
		defer close(done)
		how, err := act()
		if err != nil {
			k.sim.Fail(fmt.Errorf("misconfigure the bus: %s: %w", how, err))
		}
		return how
	}}
	k.sim.Enqueue(t)
	select {
	case <-done:
	case <-k.sim.ctx.Done():
		k.sim.Remove(t)
	}
}

// breakQueue breaks one queue, and returns a function that restores it.
func (k *busMisconfigurer) breakQueue() (repair func() (string, error)) {
	ctx := context.WithoutCancel(k.sim.ctx)
	queue := []string{k.queues.Request, k.queues.Reply, k.queues.Dequeue}[k.rng.IntN(3)]
	repair = func() (string, error) {
		return queue + " is right again", k.setProperties(ctx, queue, func(p *admin.QueueProperties) {
			p.Status, p.MaxMessageSizeInKilobytes = ptr(admin.EntityStatusActive), ptr(int64(256))
		})
	}
	setTo := func(how string, change func(*admin.QueueProperties)) {
		k.runAtOnce(func() (string, error) { return queue + " " + how, k.setProperties(ctx, queue, change) })
	}
	switch action := k.rng.IntN(8); action {
	case 0, 1:
		status := []admin.EntityStatus{admin.EntityStatusDisabled, admin.EntityStatusSendDisabled, admin.EntityStatusReceiveDisabled}[k.rng.IntN(3)]
		setTo("is "+string(status), func(p *admin.QueueProperties) { p.Status = &status })
	case 2, 3:
		setTo("takes small messages only", func(p *admin.QueueProperties) { p.MaxMessageSizeInKilobytes = ptr(int64(1)) })
	case 4, 5, 6: // these faults are not for notices: hubs do not repeat lost notices
		if queue == k.queues.Dequeue {
			queue = k.queues.Reply
		}
		k.runAtOnce(func() (string, error) { return queue + " is gone", k.deleteQueue(ctx, queue) })
		repair = func() (string, error) {
			return queue + " is there again", k.createQueue(ctx, queue, k.queueProperties(true))
		}
		if action == 4 {
			k.runAtOnce(func() (string, error) {
				return queue + " has no sessions", k.createQueue(ctx, queue, k.queueProperties(false))
			})
			repair = k.recreateQueue(ctx, queue)
		}
	default:
		queue = k.queues.Request
		k.fillQueue(ctx, queue)
		repair = k.recreateQueue(ctx, queue)
	}
	return repair
}

// recreateQueue returns a function that replaces a queue by an empty queue with the correct settings.
func (k *busMisconfigurer) recreateQueue(ctx context.Context, queue string) func() (string, error) {
	return func() (string, error) {
		if err := k.deleteQueue(ctx, queue); err != nil {
			return queue + " cannot be removed", err
		}
		return queue + " is there anew", k.createQueue(ctx, queue, k.queueProperties(true))
	}
}

func (k *busMisconfigurer) queueProperties(sessions bool) *admin.QueueProperties {
	return &admin.QueueProperties{RequiresSession: &sessions, LockDuration: &k.sim.plan.lockDuration, MaxDeliveryCount: ptr(int32(maxDeliveries))}
}

// fillQueue fills a queue to its size limit with a message that no process receives.
func (k *busMisconfigurer) fillQueue(ctx context.Context, queue string) {
	const brim = 1<<20 - 300
	k.runAtOnce(func() (string, error) {
		return queue + " is small, and nobody may receive", k.setProperties(ctx, queue, func(p *admin.QueueProperties) {
			p.Status, p.MaxSizeInMegabytes, p.MaxMessageSizeInKilobytes = ptr(admin.EntityStatusReceiveDisabled), ptr(int32(1)), ptr(int64(2048))
		})
	})
	line := k.sim.newBusTransport(k.who)
	line.faultFree.Store(true)
	client, err := k.sim.busConnector(line)()
	if err != nil {
		k.sim.Fail(err)
		return
	}
	defer k.sim.closeInTime(client.Close) //nolint:contextcheck // closing has a timeout of its own
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	sender, err := client.NewSender(queue, nil)
	if err == nil {
		err = sender.SendMessage(ctx, &azservicebus.Message{SessionID: ptr("nobody's"), Body: bytes.Repeat([]byte("x"), brim)}, nil)
	}
	if err != nil && k.sim.ctx.Err() == nil {
		k.sim.Log(k.who + " could not fill " + queue + ": " + strings.TrimSpace(err.Error()))
	}
}

func (k *busMisconfigurer) setProperties(ctx context.Context, queue string, change func(*admin.QueueProperties)) error {
	there, err := k.admin.GetQueue(ctx, queue, nil)
	if err != nil {
		return err
	}
	change(&there.QueueProperties)
	_, err = k.admin.UpdateQueue(ctx, queue, there.QueueProperties, nil)
	return err
}

func (k *busMisconfigurer) deleteQueue(ctx context.Context, queue string) error {
	_, err := k.admin.DeleteQueue(ctx, queue, nil)
	return err
}

func (k *busMisconfigurer) createQueue(ctx context.Context, queue string, p *admin.QueueProperties) error {
	_, err := k.admin.CreateQueue(ctx, queue, &admin.CreateQueueOptions{Properties: p})
	return err
}

func ptr[T any](v T) *T { return &v }
