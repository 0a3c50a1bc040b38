package broker

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// A ConsumerCall contains the data that is needed to call a consumer.
type ConsumerCall struct {
	ID          domain.PartyID
	CallbackURL string
	Token       string
}

// Callee returns the consumer whose cursor is given. It reads the newest stored state. It fails with NotFound if there
// is no such consumer.
func (s *Service) Callee(ctx context.Context, cursor domain.CursorID) (*ConsumerCall, error) {
	id, isConsumer := domain.ConsumerOf(cursor)
	if !isConsumer {
		return nil, domain.Errorf(domain.NotFound, "cursor %s belongs to no consumer", cursor)
	}
	p, err := s.ports.Parties.Party(ctx, id)
	if err != nil {
		return nil, err
	}
	token, err := s.openToken(p)
	if err != nil {
		return nil, err
	}
	return &ConsumerCall{ID: id, CallbackURL: p.CallbackURL, Token: token}, nil
}
