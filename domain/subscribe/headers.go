package subscribe

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// checkHeaders returns an Invalid error that begins with a JSON pointer if calls must not contain
// the headers. secret is the secret that signs the calls, or "".
func (s *Service) checkHeaders(headers map[string]string, secret string) error {
	switch {
	case len(headers) == 0:
		return nil
	case s.keys == nil:
		return domain.Errorf(domain.Invalid, "/headers: this hub has no key to seal their values; its operator can set push.secret-key")
	}
	return s.opts.CheckHeaders(headers, secret)
}

// checkWithStored checks a draft's headers together with the stored secret, or a draft's secret
// together with the stored headers. If the stored value cannot be decrypted, it checks nothing. If
// headers and secret then set the same header, the secret takes precedence.
func (s *Service) checkWithStored(wanted *repository.Definition, draft *Draft) error {
	headers, secret := draft.Headers, textOf(draft.Secret)
	if s.keys == nil || (headers == nil) == (draft.Secret == nil) {
		return nil // the draft contains neither, or it contains headers and secret, which were checked together
	}
	var err error
	if headers == nil {
		headers, err = s.keys.OpenHeaders(wanted)
	} else {
		secret, err = s.openSecret(wanted)
	}
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	return s.checkHeaders(headers, secret)
}

// sealHeaders encrypts headers, and stores them and their names in the definition d.
func (s *Service) sealHeaders(d *repository.Definition, headers map[string]string) {
	if len(headers) > 0 {
		d.Headers, d.HeaderNames = s.keys.sealHeaders(d.ID, d.Owner, headers), slices.Sorted(maps.Keys(headers))
	}
}

// hasHeaders reports whether the stored headers of d are equal to headers.
func (s *Service) hasHeaders(d *repository.Definition, headers map[string]string) bool {
	if d.Headers == "" || len(headers) == 0 || s.keys == nil {
		return d.Headers == "" && len(headers) == 0
	}
	stored, err := s.keys.OpenHeaders(d)
	return err == nil && maps.Equal(stored, headers)
}

func textOf(secret *string) string {
	if secret == nil {
		return ""
	}
	return *secret
}

// sealHeaders encrypts the headers of a subscription. The result cannot be decrypted for a
// different subscription, or as a secret.
func (k *Keyring) sealHeaders(id domain.SubscriptionID, owner domain.ActorID, headers map[string]string) string {
	text, err := json.Marshal(headers)
	if err != nil {
		panic(err) // cannot happen: strings can be encoded
	}
	return k.SealFor(headersFor(id, owner), string(text))
}

// OpenHeaders returns the decrypted headers of a subscription, or nil if it has none. It fails with
// the errors of [Keyring.Open].
func (k *Keyring) OpenHeaders(d *repository.Definition) (headers map[string]string, err error) {
	if d.Headers == "" {
		return nil, nil //nolint:nilnil // nil means no headers
	}
	text, err := k.OpenFor(headersFor(d.ID, d.Owner), d.Headers)
	if err != nil {
		return nil, domain.Errorf(domain.KindOf(err), "headers of subscription %s: %w", d.ID, err)
	}
	if err := json.Unmarshal([]byte(text), &headers); err != nil {
		return nil, domain.Errorf(domain.Damaged, "the headers of subscription %s are not readable", d.ID)
	}
	return headers, nil
}

func headersFor(id domain.SubscriptionID, owner domain.ActorID) string {
	return sealedFor(id, owner) + "|headers"
}
