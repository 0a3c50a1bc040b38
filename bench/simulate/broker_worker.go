package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/api/broker/failsafe"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

var _ failsafe.Hub = (*overdueHub)(nil)

// An overdueHub is the hub of the worker of a node. Any node answers its requests.
type overdueHub struct {
	party
	w *brokerWorld
}

// runWorker re-triggers overdue jobs until ctx ends, if the node has a worker.
func (n *brokerNode) runWorker(ctx context.Context) {
	if f := &n.p.failSafe; f.recovery != byWorker || !f.isOff[n.index] {
		return
	}
	hub := &overdueHub{party: n.w.newParty(n.who, n.use(4000)), w: n.w}
	failsafe.New(hub, failsafe.Options{Random: newDice(n.p.o.Seed, n.use(4500)).next}).Run(ctx)
}

// request waits for a turn, and returns the broker of a node that runs.
func (h *overdueHub) request(what string) (*brokerNode, error) {
	if _, ok := h.turn(what); !ok {
		return nil, h.w.ctx.Err()
	}
	n := h.w.anyRunning(h.d)
	if n == nil {
		return nil, domain.Errorf(domain.Unavailable, "no node runs")
	}
	return n.broker, nil
}

// Overdue implements [failsafe.Hub].
func (h *overdueHub) Overdue(ctx context.Context, delay time.Duration, page string) (failsafe.Page, error) {
	q := broker.OverdueQuery{Delay: delay}
	if _, err := fmt.Sscanf(page, "%d %s", &q.First.Shard, &q.First.Cursor); page != "" && err != nil {
		return failsafe.Page{}, err
	}
	n, err := h.request("lists overdue jobs")
	if err != nil {
		return failsafe.Page{}, err
	}
	jobs, next, more, err := n.service.Overdue(ctx, adminCredentials, q)
	if failure := unexplained(err); failure != nil {
		h.w.fail(fmt.Errorf("overdue jobs cannot be listed: %w", failure))
	}
	var found failsafe.Page
	for _, j := range jobs {
		found.Jobs = append(found.Jobs, failsafe.Job{Channel: j.Consumer.Channel().String(), Message: j.Message, Consumer: j.Consumer.String()})
	}
	if more {
		found.Next = fmt.Sprintf("%d %s", next.Shard, next.Cursor)
	}
	return found, err
}

// Retrigger implements [failsafe.Hub].
func (h *overdueHub) Retrigger(ctx context.Context, job failsafe.Job) error {
	channel, err := domain.Channels.Parse(job.Channel)
	if err != nil {
		return err
	}
	consumer, err := channel.Consumers().Parse(job.Consumer)
	if err != nil {
		return err
	}
	n, err := h.request("re-triggers an overdue job")
	if err != nil {
		return err
	}
	err = n.service.RetriggerJob(ctx, adminCredentials, consumer, job.Message)
	if failure := unexplained(err); failure != nil {
		h.w.fail(fmt.Errorf("message %s of %s, which is overdue, cannot be re-triggered: %w", job.Message, consumer, failure))
	}
	if err == nil {
		h.w.reached("the worker had an overdue job re-triggered")
	}
	return err
}
