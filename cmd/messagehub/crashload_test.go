package main

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// write sends batches to both actors, and repeats each until it is
// acknowledged.
func (r *crashRun) write(ctx context.Context, writer int) error {
	g := energymarket.NewGenerator(r.seed, uint64(100+writer))
	for {
		select {
		case <-r.stop:
			return nil
		default:
		}
		body := []byte{'['}
		n := 1 + g.IntN(25)
		for i := range n {
			k := &energymarket.Kinds[[]int{0, 2, 6}[g.IntN(3)]]
			e := g.Event(&r.actors[g.IntN(crashActors)], k, energymarket.Day)
			r.ledger.SendEvent(writer, &e)
			if i > 0 {
				body = append(body, ',')
			}
			body = e.AppendJSON(body)
		}
		body = append(body, ']')
		err := r.hub.retryUntilAnswered(ctx, func(ctx context.Context, hub *hubclient.Client) error {
			got, err := hub.SendEvents(ctx, body)
			if err == nil && got.Accepted+got.Duplicates != n {
				return violation{fmt.Errorf("writer %d sent %d events: %+v", writer, n, got)}
			}
			return err
		})
		if err != nil {
			return err
		}
		r.acknowledged.Add(int64(n))
		r.done()
		for _, m := range r.mail {
			nudge(m)
		}
	}
}

// act peeks and dequeues until the writers have stopped and no data is left.
func (r *crashRun) act(ctx context.Context, index int) error {
	random := rand.New(rand.NewPCG(r.seed, uint64(200+index)))
	actor := r.actors[index].GLN
	groups := []string{"", "", "timeseries", "aggregations", "masterdata"}
	for {
		quiet := false
		select {
		case <-r.quiet:
			quiet = true
		default:
		}
		group := groups[random.IntN(len(groups))]
		if quiet {
			group = groups[0]
		}
		id, err := r.peek(ctx, actor, group)
		switch {
		case err != nil:
			return err
		case id == "" && quiet:
			return nil
		case id == "":
			select {
			case <-r.mail[index]:
			case <-r.quiet:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if random.IntN(4) == 0 {
			again, err := r.peek(ctx, actor, group)
			if err != nil {
				return err
			}
			if again != id {
				return fmt.Errorf("actor %s peeked bundle %s and then, before it dequeued it, %q", actor, id, again)
			}
			r.repeatedPeeks.Add(1)
		}
		if err := r.dequeue(ctx, actor, id); err != nil {
			return err
		}
	}
}

func (r *crashRun) peek(ctx context.Context, actor, group string) (id string, err error) {
	err = r.hub.retryUntilAnswered(ctx, func(ctx context.Context, hub *hubclient.Client) error {
		asked := r.ledger.Now()
		var body []byte
		var err error
		if id, body, err = hub.Peek(ctx, actor, hubclient.PeekOptions{Group: group}); err != nil || id == "" {
			return err
		}
		if err := r.ledger.ReceiveBundle(actor, id, body, asked); err != nil {
			return violation{err}
		}
		r.done()
		return nil
	})
	return id, err
}

// dequeue repeats a Dequeue until there is a reply. A 404 is valid only if the
// reply to an earlier attempt was lost.
func (r *crashRun) dequeue(ctx context.Context, actor, id string) error {
	lost := false
	return r.hub.retryUntilAnswered(ctx, func(ctx context.Context, hub *hubclient.Client) error {
		ok, err := hub.Dequeue(ctx, actor, id)
		switch {
		case err != nil:
			if !lost {
				r.lostReplies.Add(1)
			}
			lost = true
			return err
		case !ok && !lost:
			return violation{fmt.Errorf("bundle %s of %s is 404, although it was peeked and never dequeued", id, actor)}
		case !ok:
			r.already.Add(1)
		}
		r.ledger.Confirm(actor, id, ok)
		r.done()
		return nil
	})
}
