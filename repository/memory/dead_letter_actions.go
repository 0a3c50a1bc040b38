package memory

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.DeadLetterActions = (*Store)(nil)

// BeginDeadLetterAction implements [repository.DeadLetterActions].
func (s *Store) BeginDeadLetterAction(ctx context.Context, action repository.DeadLetterAction) (repository.DeadLetterAction, error) {
	if err := cmp.Or(action.Check(), ctx.Err()); err != nil {
		return repository.DeadLetterAction{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	action.ID, action.When = strconv.Itoa(len(s.deadLetterActions)), s.opts.Clock()
	s.deadLetterActions = append(s.deadLetterActions, action)
	return action, nil
}

// EndDeadLetterAction implements [repository.DeadLetterActions].
func (s *Store) EndDeadLetterAction(ctx context.Context, action repository.DeadLetterAction) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.deadLetterActions, func(o repository.DeadLetterAction) bool { return o.ID == action.ID })
	if at < 0 {
		return domain.Errorf(domain.NotFound, "no action about dead letters has the id %q", action.ID)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.deadLetterActions[at] = action
	return nil
}

// DeadLetterActions implements [repository.DeadLetterActions].
func (s *Store) DeadLetterActions(ctx context.Context, queue string, limit int) (orders []repository.DeadLetterAction, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range slices.Backward(s.deadLetterActions) {
		if o.Queue == queue && len(orders) < limit {
			orders = append(orders, o)
		}
	}
	return orders, ctx.Err()
}
