package memory

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.DeadLetterOrders = (*Store)(nil)

// BeginDeadLetterOrder implements [repository.DeadLetterOrders].
func (s *Store) BeginDeadLetterOrder(ctx context.Context, order repository.DeadLetterOrder) (repository.DeadLetterOrder, error) {
	if err := cmp.Or(order.Check(), ctx.Err()); err != nil {
		return repository.DeadLetterOrder{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	order.ID, order.When = strconv.Itoa(len(s.deadLetterOrders)), s.opts.Clock()
	s.deadLetterOrders = append(s.deadLetterOrders, order)
	return order, nil
}

// EndDeadLetterOrder implements [repository.DeadLetterOrders].
func (s *Store) EndDeadLetterOrder(ctx context.Context, order repository.DeadLetterOrder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.deadLetterOrders, func(o repository.DeadLetterOrder) bool { return o.ID == order.ID })
	if at < 0 {
		return domain.Errorf(domain.NotFound, "no order about dead letters has the id %q", order.ID)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.deadLetterOrders[at] = order
	return nil
}

// DeadLetterOrders implements [repository.DeadLetterOrders].
func (s *Store) DeadLetterOrders(ctx context.Context, queue string, limit int) (orders []repository.DeadLetterOrder, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range slices.Backward(s.deadLetterOrders) {
		if o.Queue == queue && len(orders) < limit {
			orders = append(orders, o)
		}
	}
	return orders, ctx.Err()
}
