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

// Credentials are the tokens in a request. A missing token is "".
type Credentials struct {
	IsAdmin       bool // true if the request has the operators' token
	ChannelToken  string
	ProducerID    string
	ProducerToken string
	ConsumerToken string
}

// The errors for requests without access. They do not reveal which parties exist.
var (
	// ErrUnauthenticated reports a request without the required token.
	ErrUnauthenticated = errors.New("the request has no credentials")
	// ErrForbidden reports a request whose token is wrong, or whose party does not exist.
	ErrForbidden = errors.New("the credentials of the request are wrong")
)

// RequireAdmin returns an error unless the request has the operators' token.
func (c *Credentials) RequireAdmin() error {
	if !c.IsAdmin {
		return ErrUnauthenticated
	}
	return nil
}

// rereadAge is the age up to which a cached party can reject a token. An older party is read again first, because its
// token may have been replaced. So wrong tokens cause at most one read per second.
const rereadAge = time.Second

// requireReader returns an error unless the request may read a channel, which needs the token of the operators or of
// the channel. An operator gets NotFound if the channel does not exist.
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

// requireConsumer returns an error unless the request is from the consumer or an operator. An operator gets NotFound if
// the consumer does not exist.
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

// CheckProducer returns an error unless the request may broadcast to a channel. Broadcast checks this, too; callers use
// CheckProducer before they read a large body.
func (s *Service) CheckProducer(ctx context.Context, c *Credentials, channel domain.PartyID) error {
	_, err := s.requireProducer(ctx, c, channel)
	return err
}

// requireProducer returns the producer of a request. It returns an error unless the producer may broadcast to the
// channel.
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

// requireToken returns ErrForbidden unless token is the token of the party.
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

// isToken reports whether token is the token of a party. It compares in constant time.
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

// openToken decrypts the token of a consumer.
func (s *Service) openToken(p *repository.Party) (string, error) {
	if s.keys == nil {
		return "", domain.Errorf(domain.Unavailable, "the token of consumer %s is sealed, and this node has no key; set push.secret-key", p.ID)
	}
	return s.keys.OpenFor(tokenPurpose(p.ID), p.Token)
}

// tokenPurpose returns the purpose for which a consumer's token is encrypted.
func tokenPurpose(consumer domain.PartyID) string {
	return "consumer|" + consumer.Channel().String() + "|" + consumer.String()
}
