package simulate

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
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
	if k.d.n(2) == 0 {
		status := []admin.EntityStatus{admin.EntityStatusDisabled, admin.EntityStatusSendDisabled, admin.EntityStatusReceiveDisabled}[k.d.n(3)]
		setTo("is "+string(status), func(p *admin.QueueProperties) { p.Status = &status })
	} else {
		setTo("takes small messages only", func(p *admin.QueueProperties) { p.MaxMessageSizeInKilobytes = ptr(int64(1)) })
	}
	return mends
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

func ptr[T any](v T) *T { return &v }
