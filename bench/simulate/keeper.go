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
)

// A keeper has the namespace in hand, and gets the queues between the hubs and a
// domain wrong, one at a time, each for a while. What is asked meanwhile comes to
// nothing, and is asked again.
type keeper struct {
	party
	door   *admin.Client
	queues contract.Queues
}

func (w *world) newKeeper() (*keeper, error) {
	k := &keeper{party: w.newParty("keeper", 90), queues: contract.DefaultQueues(w.plan.requested.String())}
	var err error
	k.door, err = admin.NewClientFromConnectionString(w.bus.ConnectionString(""), &admin.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry: policy.RetryOptions{MaxRetries: -1},
		Transport: doer(func(req *http.Request) (*http.Response, error) {
			answer := httptest.NewRecorder()
			w.bus.Handler().ServeHTTP(answer, req)
			return answer.Result(), nil
		}),
	}})
	return k, err
}

// acts does some harm, until finish is closed or the weather clears up.
func (k *keeper) acts(finish <-chan struct{}) {
	const deeds = 20
	for range deeds {
		if !k.pause(time.Duration(1+k.d.n(15_000)) * time.Millisecond) {
			return
		}
		select {
		case <-finish:
			return
		default:
		}
		if k.w.calm {
			return
		}
		mends := k.harms()
		k.w.reached("a queue was not what it should be")
		k.pause(time.Duration(1+k.d.n(25)) * time.Second)
		k.does(mends)
	}
}

// does something at once, between the steps of all others, also when the world ends.
func (k *keeper) does(something func() (string, error)) {
	over := make(chan struct{})
	t := &turn{who: k.who, what: "comes by", goes: func() string {
		defer close(over)
		how, err := something()
		if err != nil {
			k.w.fail(fmt.Errorf("the keeper: %s: %w", how, err))
		}
		return how
	}}
	k.w.wait(t)
	select {
	case <-over:
	case <-k.w.ctx.Done():
		k.w.leave(t)
	}
}

// harms makes one thing wrong, and returns what makes it right.
func (k *keeper) harms() (mends func() (string, error)) {
	ctx := context.WithoutCancel(k.w.ctx)
	queue := []string{k.queues.Request, k.queues.Reply, k.queues.Dequeue}[k.d.n(3)]
	mends = func() (string, error) {
		return queue + " is right again", k.set(ctx, queue, func(p *admin.QueueProperties) {
			p.Status, p.MaxMessageSizeInKilobytes = ptr(admin.EntityStatusActive), ptr(int64(256))
		})
	}
	setTo := func(how string, change func(*admin.QueueProperties)) {
		k.does(func() (string, error) { return queue + " " + how, k.set(ctx, queue, change) })
	}
	switch deed := k.d.n(8); deed {
	case 0, 1:
		status := []admin.EntityStatus{admin.EntityStatusDisabled, admin.EntityStatusSendDisabled, admin.EntityStatusReceiveDisabled}[k.d.n(3)]
		setTo("is "+string(status), func(p *admin.QueueProperties) { p.Status = &status })
	case 2, 3:
		setTo("takes small messages only", func(p *admin.QueueProperties) { p.MaxMessageSizeInKilobytes = ptr(int64(1)) })
	case 4, 5, 6: // what lies there is asked for again, unless it is a notice
		if queue == k.queues.Dequeue {
			queue = k.queues.Reply
		}
		k.does(func() (string, error) { return queue + " is gone", k.remove(ctx, queue) })
		mends = func() (string, error) { return queue + " is there again", k.create(ctx, queue, k.setUp(true)) }
		if deed == 4 {
			k.does(func() (string, error) { return queue + " has no sessions", k.create(ctx, queue, k.setUp(false)) })
			mends = k.anew(ctx, queue)
		}
	default:
		queue = k.queues.Request
		k.fills(ctx, queue)
		mends = k.anew(ctx, queue)
	}
	return mends
}

// anew has a queue be there as it should, with nothing in it.
func (k *keeper) anew(ctx context.Context, queue string) func() (string, error) {
	return func() (string, error) {
		if err := k.remove(ctx, queue); err != nil {
			return queue + " cannot be removed", err
		}
		return queue + " is there anew", k.create(ctx, queue, k.setUp(true))
	}
}

func (k *keeper) setUp(sessions bool) *admin.QueueProperties {
	return &admin.QueueProperties{RequiresSession: &sessions, LockDuration: &k.w.plan.locks, MaxDeliveryCount: ptr(int32(deliveries))}
}

// fills fills a queue to the brim, with what nobody takes.
func (k *keeper) fills(ctx context.Context, queue string) {
	const brim = 1<<20 - 300
	k.does(func() (string, error) {
		return queue + " is small, and nobody may receive", k.set(ctx, queue, func(p *admin.QueueProperties) {
			p.Status, p.MaxSizeInMegabytes, p.MaxMessageSizeInKilobytes = ptr(admin.EntityStatusReceiveDisabled), ptr(int32(1)), ptr(int64(2048))
		})
	})
	line := k.w.newBusLine(k.who)
	line.kind.Store(true)
	client, err := k.w.connecting(line)()
	if err != nil {
		k.w.fail(err)
		return
	}
	defer k.w.closing(client.Close) //nolint:contextcheck // it has a time of its own
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	sender, err := client.NewSender(queue, nil)
	if err == nil {
		err = sender.SendMessage(ctx, &azservicebus.Message{SessionID: ptr("nobody's"), Body: bytes.Repeat([]byte("x"), brim)}, nil)
	}
	if err != nil && k.w.ctx.Err() == nil {
		k.w.tell(k.who + " could not fill " + queue + ": " + strings.TrimSpace(err.Error()))
	}
}

func (k *keeper) set(ctx context.Context, queue string, change func(*admin.QueueProperties)) error {
	there, err := k.door.GetQueue(ctx, queue, nil)
	if err != nil {
		return err
	}
	change(&there.QueueProperties)
	_, err = k.door.UpdateQueue(ctx, queue, there.QueueProperties, nil)
	return err
}

func (k *keeper) remove(ctx context.Context, queue string) error {
	_, err := k.door.DeleteQueue(ctx, queue, nil)
	return err
}

func (k *keeper) create(ctx context.Context, queue string, p *admin.QueueProperties) error {
	_, err := k.door.CreateQueue(ctx, queue, &admin.CreateQueueOptions{Properties: p})
	return err
}

func ptr[T any](v T) *T { return &v }
