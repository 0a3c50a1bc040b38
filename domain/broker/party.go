package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The limits of a party.
const (
	MaxToken = 256 // bytes
	MaxLabel = 256
)

// A Draft is the requested state of a party.
type Draft struct {
	Label       string  // "" retains the label; for a new party, it uses the name
	Token       *string // nil retains the token
	CallbackURL string  // callback URL of a consumer
}

// A Party is the public state of a producer, channel or consumer, without its token.
type Party struct {
	ID          domain.PartyID
	Label       string
	CallbackURL string // callback URL of a consumer
	Created     time.Time
	Changed     time.Time // time of the last change, in whole seconds
	Version     string    // version, which changes whenever the party changes
}

func viewParty(p *repository.Party) *Party {
	return &Party{ID: p.ID, Label: p.Label, CallbackURL: p.CallbackURL, Created: p.Created, Changed: p.Changed, Version: string(p.Version)}
}

// PutParty creates or replaces a party; created reports which. If the party already equals the draft, PutParty changes
// nothing, whatever the condition, so the call may be repeated. It fails with Invalid for an invalid draft, NotFound if
// a consumer's channel does not exist, Conflict if the party changes concurrently, [ErrChanged], or
// [ErrUnauthenticated].
func (s *Service) PutParty(ctx context.Context, creds *Credentials, id domain.PartyID, d Draft, when Condition) (stored *Party, created bool, err error) {
	if err := creds.RequireAdmin(); err != nil {
		return nil, false, err
	}
	if err := s.checkDraft(ctx, id, &d); err != nil {
		return nil, false, err
	}
	found, err := s.storeParty(ctx, id, &d, &when, &created)
	s.cache.forget(id)
	if err != nil {
		return nil, false, err
	}
	if id.IsConsumer() {
		if err := s.createCursor(ctx, found); err != nil {
			return nil, false, err
		}
	}
	return viewParty(found), created, nil
}

// checkDraft returns an Invalid error for an invalid draft. The error begins with the name of the wrong field.
func (s *Service) checkDraft(ctx context.Context, id domain.PartyID, d *Draft) error {
	if err := domain.CheckText("name", d.Label, MaxLabel); err != nil {
		return err
	}
	if d.Token != nil {
		if err := CheckToken(*d.Token); err != nil {
			return err
		}
	}
	if !id.IsConsumer() {
		if d.CallbackURL != "" {
			return domain.Errorf(domain.Invalid, "callbackUrl: only consumers have one")
		}
		return nil
	}
	switch {
	case s.keys == nil:
		return domain.Errorf(domain.Invalid, "token: this hub has no key to seal tokens; its operator can set push.secret-key")
	case d.CallbackURL == "":
		return domain.Errorf(domain.Invalid, "callbackUrl: want the URL that the consumer is called at")
	}
	if err := domain.CheckCallbackURL(d.CallbackURL); err != nil {
		return domain.Errorf(domain.Invalid, "callbackUrl: %w", err)
	}
	return s.opts.CheckURL(ctx, d.CallbackURL)
}

// CheckToken returns an Invalid error if a token cannot be sent in a header. The error does not contain the token.
func CheckToken(token string) error {
	if n := len(token); n < 1 || n > MaxToken {
		return domain.Errorf(domain.Invalid, "token: want 1 to %d characters, got %d", MaxToken, n)
	}
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' {
			return domain.Errorf(domain.Invalid, "token: want printable ASCII without blanks")
		}
	}
	return nil
}

// storeParty stores the draft, unless the party already equals it.
func (s *Service) storeParty(ctx context.Context, id domain.PartyID, d *Draft, when *Condition, created *bool) (*repository.Party, error) {
	found, err := s.ports.Parties.Party(ctx, id)
	switch {
	case domain.KindOf(err) == domain.NotFound:
		if !when.canChange(nil) {
			return nil, newChangedError()
		}
		p, err := s.createParty(ctx, id, d)
		if domain.KindOf(err) != domain.Conflict {
			*created = err == nil
			return p, err
		}
		// read again, because a concurrent request has created the party
		if found, err = s.ports.Parties.Party(ctx, id); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	return s.replaceParty(ctx, found, d, when)
}

// createParty stores a new party. It fails with Conflict if the party already exists.
func (s *Service) createParty(ctx context.Context, id domain.PartyID, d *Draft) (*repository.Party, error) {
	if d.Token == nil {
		return nil, domain.Errorf(domain.Invalid, "token: missing; the hub generates none, because it never shows tokens")
	}
	now := s.opts.Clock().UTC().Truncate(time.Second)
	p := &repository.Party{ID: id, Label: cmp.Or(d.Label, id.String()), CallbackURL: d.CallbackURL, Created: now, Changed: now}
	s.setToken(p, *d.Token)
	if id.IsConsumer() {
		if _, err := s.ports.Parties.Party(ctx, id.Channel()); err != nil {
			if domain.KindOf(err) == domain.NotFound {
				err = domain.Errorf(domain.NotFound, "there is no channel %s", id.Channel())
			}
			return nil, err
		}
		var err error
		if p.Start, err = s.ports.Streams.CurrentEnd(ctx, id.Stream()); err != nil {
			return nil, err
		}
	}
	version, err := s.ports.Parties.PutParty(ctx, p)
	p.Version = version
	return p, err
}

// replaceParty changes found to the state of d, unless they are equal.
func (s *Service) replaceParty(ctx context.Context, found *repository.Party, d *Draft, when *Condition) (*repository.Party, error) {
	next := found.Clone()
	next.Label = cmp.Or(d.Label, found.Label)
	next.CallbackURL = d.CallbackURL
	hasToken := true
	if d.Token != nil {
		var err error
		if hasToken, err = s.isToken(found, *d.Token); err != nil && domain.KindOf(err) != domain.Damaged {
			return nil, err
		}
	}
	if hasToken && next.Label == found.Label && next.CallbackURL == found.CallbackURL {
		return found, nil
	}
	if !when.canChange(found) {
		return nil, newChangedError()
	}
	if !hasToken {
		s.setToken(next, *d.Token)
	}
	next.Changed = s.opts.Clock().UTC().Truncate(time.Second)
	if earliest := found.Changed.Add(time.Second); next.Changed.Before(earliest) {
		next.Changed = earliest
	}
	version, err := s.ports.Parties.PutParty(ctx, next)
	if domain.KindOf(err) == domain.Conflict && when.requiresParty() {
		err = newChangedError() // the version that the condition requires has been replaced
	}
	next.Version = version
	if next.ID.IsConsumer() && (err == nil || domain.KindOf(err) == domain.Uncertain) {
		s.opts.Changed(next.ID.Cursor())
	}
	return next, err
}

func (s *Service) setToken(p *repository.Party, token string) {
	if p.ID.IsConsumer() {
		p.Token = s.keys.SealFor(tokenPurpose(p.ID), token)
		return
	}
	p.TokenSum = sha256.Sum256([]byte(token))
}

// createCursor creates the cursor of a consumer at p.Start, unless the cursor exists.
func (s *Service) createCursor(ctx context.Context, p *repository.Party) error {
	id, stream := p.ID.Cursor(), p.ID.Stream()
	_, err := s.ports.Cursors.Standing(ctx, id)
	if domain.KindOf(err) != domain.NotFound {
		return err
	}
	// If a crash prevents this write, the consumer gets no messages until its PUT is repeated.
	err = s.ports.Cursors.Create(ctx, id, domain.Standing{Stream: stream, Segment: p.Start.Segment, At: p.Start.Positions})
	if err != nil && domain.KindOf(err) != domain.Conflict {
		return err
	}
	s.opts.Created(id, stream)
	return nil
}

// GetParty returns a party. Operators may read all parties; a channel's token permits reading the channel and its
// consumers.
func (s *Service) GetParty(ctx context.Context, creds *Credentials, id domain.PartyID) (*Party, error) {
	if err := s.requireLister(ctx, creds, id.List(), id); err != nil {
		return nil, err
	}
	p, err := s.ports.Parties.Party(ctx, id)
	if err != nil {
		return nil, err
	}
	return viewParty(p), nil
}

// ListParties returns up to limit parties, sorted by the bytes of their names, starting at the name first. next is the
// name at which the list continues, or empty at the end.
func (s *Service) ListParties(ctx context.Context, creds *Credentials, list domain.PartyList, first string, limit int) (parties []*Party, next string, err error) {
	channel, ofChannel := list.Channel()
	if err := s.requireLister(ctx, creds, list, channel); err != nil {
		return nil, "", err
	}
	if ofChannel {
		if _, err := s.findParty(ctx, channel, s.opts.CacheTime); err != nil {
			return nil, "", err
		}
	}
	found, err := s.ports.Parties.Parties(ctx, list, first, limit+1)
	if err != nil {
		return nil, "", err
	}
	if len(found) > limit {
		next = found[limit].ID.String()
		found = found[:limit]
	}
	for _, p := range found {
		parties = append(parties, viewParty(p))
	}
	return parties, next, nil
}

// requireLister returns an error unless the request may read a party of a list. Operators may read all parties; a
// channel's token permits reading the channel and its consumers.
func (s *Service) requireLister(ctx context.Context, creds *Credentials, list domain.PartyList, id domain.PartyID) error {
	channel, isConsumers := list.Channel()
	switch {
	case creds.IsAdmin:
		return nil
	case isConsumers:
		return s.requireReader(ctx, creds, channel)
	case list == domain.Channels && id.String() != "":
		return s.requireReader(ctx, creds, id)
	}
	if creds.ChannelToken != "" || creds.ProducerToken != "" || creds.ConsumerToken != "" {
		return ErrForbidden
	}
	return ErrUnauthenticated
}
