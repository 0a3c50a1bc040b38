package identity

import (
	"encoding/json"
	"math"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A token is what a verified token says.
type token struct {
	issuer, subject, client, tenant string

	roles       []Role
	origins     []domain.Origin
	actors      []domain.ActorID
	certificate string // SHA-256 of the client certificate that it counts with, in base64url; "": any or none
	expires     time.Time

	generation int // of the keys that verified it
}

// claims are the members of a token.
type claims map[string]json.RawMessage

// find returns a claim, and whether it is there and not null.
func (c claims) find(name string) (raw json.RawMessage, isThere bool) {
	raw, isThere = c[name]
	return raw, isThere && raw[0] != 'n'
}

// text returns a claim that is a text, "" if it is missing.
func (c claims) text(name string) (text string, err error) {
	raw, ok := c.find(name)
	if !ok {
		return "", nil
	}
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", errClaims
	}
	return text, nil
}

// firstText returns the first claim that is there.
func (c claims) firstText(names ...string) (string, error) {
	for _, name := range names {
		if text, err := c.text(name); text != "" || err != nil {
			return text, err
		}
	}
	return "", nil
}

// list returns a claim that is a list of texts, nil if it is missing.
func (c claims) list(name string) (texts []string, err error) {
	raw, ok := c.find(name)
	if !ok {
		return nil, nil
	}
	if raw[0] != '[' || json.Unmarshal(raw, &texts) != nil {
		return nil, errClaims
	}
	return texts, nil
}

// time returns a claim that is a time, the zero time if it is missing.
func (c claims) time(name string) (time.Time, error) {
	raw, ok := c.find(name)
	if !ok {
		return time.Time{}, nil
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) != nil || math.Abs(seconds) > 1<<40 {
		return time.Time{}, errClaims // a text, or a time that no calendar has
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), nil
}

// maxTimeAhead is how far ahead of the clock the claim nbf may be.
const maxTimeAhead = time.Minute

// readClaims returns what the payload of a token says, the signature of which has been verified.
func (a *Authenticator) readClaims(payload []byte, now time.Time) (t *token, err error) {
	var c claims
	if json.Unmarshal(payload, &c) != nil {
		return nil, errClaims
	}
	t = new(token)
	for _, f := range []struct {
		at    *string
		names []string
	}{{&t.subject, []string{"sub"}}, {&t.client, []string{"azp", "appid", "client_id"}}, {&t.tenant, []string{"tid"}}} {
		if *f.at, err = c.firstText(f.names...); err != nil {
			return nil, err
		}
	}
	if t.expires, err = c.time("exp"); err != nil {
		return nil, err
	}
	begins, err := c.time("nbf")
	switch {
	case err != nil:
		return nil, err
	case t.expires.IsZero():
		return nil, errNoExpiry
	case !now.Before(t.expires):
		return nil, expired(now)
	case begins.After(now.Add(maxTimeAhead)):
		return nil, invalid("The token does not count yet. Compare the clocks: that of the hub says " + clockText(now) + ".")
	}
	roles, err := c.list(a.opts.RolesClaim)
	if err != nil {
		return nil, err
	}
	t.roles, t.origins = rolesOf(roles)
	if t.actors, err = c.actors(a.opts.ActorClaim); err != nil {
		return nil, err
	}
	t.certificate, err = c.certificate()
	return t, err
}

// actors returns the actors of a claim, which is the id of one or a list of ids.
func (c claims) actors(name string) ([]domain.ActorID, error) {
	texts := []string{""}
	var err error
	if raw, ok := c.find(name); ok && raw[0] == '[' {
		texts, err = c.list(name)
	} else if texts[0], err = c.text(name); texts[0] == "" {
		texts = nil
	}
	if err != nil {
		return nil, err
	}
	actors := make([]domain.ActorID, len(texts))
	for i, text := range texts {
		if actors[i], err = domain.ParseActorID(text); err != nil {
			return nil, errClaims
		}
	}
	return actors, nil
}

// certificate returns the hash of the certificate that a token is bound to (RFC 8705), "" for none.
func (c claims) certificate() (string, error) {
	raw, ok := c.find("cnf")
	if !ok {
		return "", nil
	}
	var confirmation claims
	if json.Unmarshal(raw, &confirmation) != nil {
		return "", errClaims
	}
	hash, err := confirmation.text("x5t#S256")
	if err == nil && hash == "" {
		return "", errCertificate // it is bound to something that the hub cannot verify
	}
	return hash, err
}

func expired(now time.Time) error {
	return invalid("The token has expired; ask the issuer for a new one. If it is new, compare the clocks: that of the hub says " + clockText(now) + ".")
}

func clockText(now time.Time) string { return now.UTC().Format(time.RFC3339) }
