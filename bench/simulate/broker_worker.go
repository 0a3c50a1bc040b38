package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/api/broker/failsafe"
	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

var _ failsafe.Hub = (*overdueHub)(nil)

// An overdueHub implements the hub's interface for the fail-safe worker of a node. It sends each request to a random
// node.
type overdueHub struct {
	baseClient
	sim *brokerSimulation
}

// runWorker runs the fail-safe worker of the node, which re-triggers overdue jobs until ctx is done. It returns
// immediately if the node has no worker.
func (n *brokerNode) runWorker(ctx context.Context) {
	if f := &n.sim.failSafe; f.recovery != byWorker || !f.isDisabled[n.index] {
		return
	}
	hub := &overdueHub{baseClient: n.sim.newClient(n.who, n.rngPurpose(4000)), sim: n.sim}
	failsafe.New(hub, failsafe.Options{Random: random.New(n.sim.options.Seed, n.rngPurpose(4500)).Uint64}).Run(ctx)
}

// awaitBroker waits until the scheduler chooses the worker, and returns the broker of a running node.
func (h *overdueHub) awaitBroker(what string) (*brokerNode, error) {
	if _, ok := h.awaitTurn(what); !ok {
		return nil, h.sim.ctx.Err()
	}
	n := h.sim.pickRunning(h.rng)
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
	n, err := h.awaitBroker("lists overdue jobs")
	if err != nil {
		return failsafe.Page{}, err
	}
	jobs, next, more, err := n.service.Overdue(ctx, adminCredentials, q)
	if failure := unexplainedError(err); failure != nil {
		h.sim.Fail(fmt.Errorf("overdue jobs cannot be listed: %w", failure))
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
	n, err := h.awaitBroker("re-triggers an overdue job")
	if err != nil {
		return err
	}
	err = n.service.RetriggerJob(ctx, adminCredentials, consumer, job.Message)
	if failure := unexplainedError(err); failure != nil {
		h.sim.Fail(fmt.Errorf("message %s of %s, which is overdue, cannot be re-triggered: %w", job.Message, consumer, failure))
	}
	if err == nil {
		h.sim.MarkReached("the worker re-triggered an overdue job")
	}
	return err
}
