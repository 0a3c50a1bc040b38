package broker

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Credentials are the tokens of a request. An empty token means that the request has none.
type Credentials struct {
	IsAdmin       bool // the request has the token of the operators
	ChannelToken  string
	ProducerID    string
	ProducerToken string
	ConsumerToken string
}

// The errors of requests that are refused. They do not reveal which parties exist.
var (
	// ErrUnauthenticated reports that a request lacks the credentials that it needs.
	ErrUnauthenticated = errors.New("the request has no credentials")
	// ErrForbidden reports that the credentials of a request are wrong, or belong to a party
	// that does not exist.
	ErrForbidden = errors.New("the credentials of the request are wrong")
)

// RequireAdmin refuses a request without the token of the operators.
func (c *Credentials) RequireAdmin() error {
	if !c.IsAdmin {
		return ErrUnauthenticated
	}
	return nil
}

// rereadAge is the maximum age of a cached party that may refuse a token. An older party is read
// again, because the token may be new. So wrong tokens cause at most one read per second.
const rereadAge = time.Second

// requireReader refuses a request that may not read a channel: it needs the token of the
// operators or the token of the channel. It fails with NotFound if an operator asks for a
// channel that does not exist.
func (s *Service) requireReader(ctx context.Context, c *Credentials, channel domain.PartyID) error {
	if c.IsAdmin {
		_, err := s.findParty(ctx, channel, s.opts.CacheTime)
		return err
	}
	if c.ChannelToken == "" {
		return ErrUnauthenticated
	}
	return s.requireToken(ctx, channel, c.ChannelToken)
}

// requireConsumer refuses a request unless it is from the consumer or an operator. It fails
// with NotFound if an operator asks for a consumer that does not exist.
func (s *Service) requireConsumer(ctx context.Context, c *Credentials, consumer domain.PartyID) error {
	if c.IsAdmin {
		_, err := s.findParty(ctx, consumer, s.opts.CacheTime)
		return err
	}
	if c.ConsumerToken == "" {
		return ErrUnauthenticated
	}
	return s.requireToken(ctx, consumer, c.ConsumerToken)
}

// CheckProducer refuses a request that may not broadcast to a channel. Broadcast does the same
// check. CheckProducer is for callers that would otherwise read a large body first.
func (s *Service) CheckProducer(ctx context.Context, c *Credentials, channel domain.PartyID) error {
	_, err := s.requireProducer(ctx, c, channel)
	return err
}

// requireProducer refuses a request that may not broadcast to a channel. It returns the producer.
func (s *Service) requireProducer(ctx context.Context, c *Credentials, channel domain.PartyID) (domain.PartyID, error) {
	if c.ChannelToken == "" || c.ProducerID == "" || c.ProducerToken == "" {
		return domain.PartyID{}, ErrUnauthenticated
	}
	producer, err := domain.Producers.Parse(c.ProducerID)
	if err != nil {
		return domain.PartyID{}, ErrForbidden
	}
	if err := s.requireToken(ctx, producer, c.ProducerToken); err != nil {
		return domain.PartyID{}, err
	}
	return producer, s.requireToken(ctx, channel, c.ChannelToken)
}

// requireToken fails with ErrForbidden unless a party has the token.
func (s *Service) requireToken(ctx context.Context, id domain.PartyID, token string) error {
	for _, maxAge := range []time.Duration{s.opts.CacheTime, min(rereadAge, s.opts.CacheTime)} {
		p, err := s.findParty(ctx, id, maxAge)
		if domain.KindOf(err) == domain.NotFound {
			return ErrForbidden
		}
		if err != nil {
			return err
		}
		isRight, err := s.isToken(p, token)
		if isRight || err != nil {
			return err
		}
	}
	return ErrForbidden
}

// isToken compares a token with the token of a party, in constant time.
func (s *Service) isToken(p *repository.Party, token string) (bool, error) {
	want := p.TokenSum
	if p.ID.IsConsumer() {
		text, err := s.openToken(p)
		if err != nil {
			return false, err
		}
		want = sha256.Sum256([]byte(text))
	}
	got := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1, nil
}

// openToken returns the token of a consumer.
func (s *Service) openToken(p *repository.Party) (string, error) {
	if s.keys == nil {
		return "", domain.Errorf(domain.Unavailable, "the token of consumer %s is sealed, and this node has no key; set push.secret-key", p.ID)
	}
	return s.keys.OpenFor(tokenPurpose(p.ID), p.Token)
}

// tokenPurpose returns the purpose with which the token of a consumer is sealed.
func tokenPurpose(consumer domain.PartyID) string {
	return "consumer|" + consumer.Channel().String() + "|" + consumer.String()
}
