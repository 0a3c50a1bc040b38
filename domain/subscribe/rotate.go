package subscribe

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// sharedPrefix is the start of each shared secret in the format of Standard Webhooks.
const sharedPrefix = "whsec_"

// RepeatTime is the time during which a repeated rotation returns the same generated secret.
const RepeatTime = 10 * time.Minute

// Rotate replaces the secret of owner's subscription by wanted. If wanted is nil, Rotate generates
// a secret and returns it. The previous secret remains valid for Options.Grace; an older secret
// becomes invalid immediately.
//
// A call may be repeated. A rotation to the current secret changes nothing. If wanted is nil and
// the call is repeated within [RepeatTime], Rotate returns the secret that the first call
// generated, provided that m is zero or the same as in the first call. To rotate again within this
// time, the caller must pass a Match with the current version.
//
// Rotate fails with NotFound if the subscription does not exist, with [ErrChanged] if m does not
// permit its current version, and with Conflict if the subscription changes during the call.
func (s *Service) Rotate(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID, wanted *string, m Match) (*Subscription, string, error) {
	const where = "/hmac_secret_key"
	if wanted != nil && *wanted == "" {
		return nil, "", domain.Errorf(domain.Invalid, "%s: want a secret; to remove the one that is there, replace the subscription", where)
	}
	if err := s.checkSecret(wanted); err != nil {
		return nil, "", err
	}
	d, err := s.findCurrent(ctx, owner, id)
	if err != nil {
		return nil, "", err
	}
	current, err := s.openSecret(d)
	if err != nil {
		return nil, "", err
	}
	if wanted != nil && subtle.ConstantTimeCompare([]byte(current), []byte(*wanted)) == 1 {
		return viewDefinition(d), "", nil
	}
	if wanted == nil && s.isRepeated(d, &m) {
		return viewDefinition(d), current, nil
	}
	if !m.canChange(d.Version) {
		return nil, "", newChangedError()
	}
	if err := s.checkKeptHeaders(d, wanted); err != nil {
		return nil, "", err
	}
	generated := ""
	if wanted == nil {
		if current != "" && !strings.HasPrefix(current, sharedPrefix) {
			return nil, "", domain.Errorf(domain.Invalid, "%s: missing; the hub makes only secrets that begin with %s, and the one that is there does not", where, sharedPrefix)
		}
		generated = newSecret()
		wanted = &generated
		if err := s.checkSecret(wanted); err != nil { // checkSecret fails without a Keyring
			return nil, "", err
		}
	}
	d.Previous, d.PreviousUntil = "", time.Time{}
	if d.Secret != "" && s.opts.Grace > 0 {
		d.Previous, d.PreviousUntil = d.Secret, s.opts.Clock().UTC().Add(s.opts.Grace).Truncate(time.Microsecond)
	}
	d.Rotation = repository.Rotation{}
	if generated != "" {
		d.Rotation = repository.Rotation{From: d.Version, At: s.opts.Clock().UTC().Truncate(time.Microsecond)}
	}
	d.Secret = s.keys.Seal(id, owner, *wanted)
	d.Version, err = s.ports.Definitions.ReplaceSubscription(ctx, d)
	s.notifyChange(id, err)
	if err != nil {
		return nil, "", m.changeError(err)
	}
	return viewDefinition(d), generated, nil
}

// isRepeated reports whether a rotation repeats the call that generated the secret of d. A client
// repeats a call if it lost the response.
func (s *Service) isRepeated(d *repository.Definition, m *Match) bool {
	at := d.Rotation.At
	if since := s.opts.Clock().Sub(at); at.IsZero() || since < 0 || since >= RepeatTime {
		return false
	}
	if len(m.Versions) == 0 {
		return true
	}
	return !m.canChange(d.Version) && m.canChange(d.Rotation.From)
}

// checkKeptHeaders checks a subscription's stored headers together with its new secret.
func (s *Service) checkKeptHeaders(d *repository.Definition, wanted *string) error {
	if wanted == nil || s.keys == nil {
		return nil
	}
	headers, err := s.keys.OpenHeaders(d)
	if err != nil {
		return nil //nolint:nilerr // if both set a header, calls have the header of the hub
	}
	return s.checkHeaders(headers, *wanted)
}

// openSecret returns the decrypted secret of a subscription, or "" if it has none.
func (s *Service) openSecret(d *repository.Definition) (string, error) {
	switch {
	case d.Secret == "":
		return "", nil
	case s.keys == nil:
		return "", domain.Errorf(domain.Unavailable, "the secret of subscription %s is sealed, and this node has no key", d.ID)
	}
	return s.keys.Open(d.ID, d.Owner, d.Secret)
}

// newSecret returns a random shared secret in the format of Standard Webhooks.
func newSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return sharedPrefix + base64.StdEncoding.EncodeToString(b[:])
}
