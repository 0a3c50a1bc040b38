package identity

import (
	"encoding/json"
	"math"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A verifiedToken contains the claims of a verified token.
type verifiedToken struct {
	issuer, subject, client, tenant string

	roles       []Role
	origins     []domain.Origin
	actors      []domain.ActorID
	certificate string // SHA-256 of the client certificate to which the token is bound, in base64url; "" if it is not bound
	expires     time.Time

	generation int // generation of the keys with which the token was verified
}

// claims contains the members of the JSON object in a token.
type claims map[string]json.RawMessage

// findClaim returns a claim as JSON. isThere is false if the claim is missing or null.
func (c claims) findClaim(name string) (raw json.RawMessage, isThere bool) {
	raw, isThere = c[name]
	return raw, isThere && raw[0] != 'n'
}

// textClaim returns a claim that must be a string. It returns "" for a missing claim.
func (c claims) textClaim(name string) (text string, err error) {
	raw, ok := c.findClaim(name)
	if !ok {
		return "", nil
	}
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", errClaims
	}
	return text, nil
}

// firstText returns the first of the named claims that is not empty.
func (c claims) firstText(names ...string) (string, error) {
	for _, name := range names {
		if text, err := c.textClaim(name); text != "" || err != nil {
			return text, err
		}
	}
	return "", nil
}

// listClaim returns a claim that must be a list of strings. It returns nil for a missing claim.
func (c claims) listClaim(name string) (texts []string, err error) {
	raw, ok := c.findClaim(name)
	if !ok {
		return nil, nil
	}
	if raw[0] != '[' || json.Unmarshal(raw, &texts) != nil {
		return nil, errClaims
	}
	return texts, nil
}

// timeClaim returns a claim that must be a time. It returns the zero time for a missing claim.
func (c claims) timeClaim(name string) (time.Time, error) {
	raw, ok := c.findClaim(name)
	if !ok {
		return time.Time{}, nil
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) != nil || math.Abs(seconds) > 1<<40 {
		return time.Time{}, errClaims // the claim is not a number, or not a valid time
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), nil
}

// maxTimeAhead is the maximum time that the claim nbf may be in the future of the hub's clock.
const maxTimeAhead = time.Minute

// readClaims returns the claims in the payload of a token with a verified
// signature.
func (a *Authenticator) readClaims(payload []byte, now time.Time) (t *verifiedToken, err error) {
	var c claims
	if json.Unmarshal(payload, &c) != nil {
		return nil, errClaims
	}
	t = new(verifiedToken)
	for _, f := range []struct {
		at    *string
		names []string
	}{{&t.subject, []string{"sub"}}, {&t.client, []string{"azp", "appid", "client_id"}}, {&t.tenant, []string{"tid"}}} {
		if *f.at, err = c.firstText(f.names...); err != nil {
			return nil, err
		}
	}
	if t.expires, err = c.timeClaim("exp"); err != nil {
		return nil, err
	}
	begins, err := c.timeClaim("nbf")
	switch {
	case err != nil:
		return nil, err
	case t.expires.IsZero():
		return nil, errNoExpiry
	case !now.Before(t.expires):
		return nil, expiredError(now)
	case begins.After(now.Add(maxTimeAhead)):
		return nil, invalidTokenError("The token is not valid yet. Compare the clocks: the hub's clock says " + clockText(now) + ".")
	}
	roles, err := c.listClaim(a.opts.RolesClaim)
	if err != nil {
		return nil, err
	}
	t.roles, t.origins = rolesOf(roles)
	if t.actors, err = c.actorsClaim(a.opts.ActorClaim); err != nil {
		return nil, err
	}
	t.certificate, err = c.certificateHash()
	return t, err
}

// actorsClaim returns the actors in a claim, which must be an id or a list of ids.
func (c claims) actorsClaim(name string) ([]domain.ActorID, error) {
	texts := []string{""}
	var err error
	if raw, ok := c.findClaim(name); ok && raw[0] == '[' {
		texts, err = c.listClaim(name)
	} else if texts[0], err = c.textClaim(name); texts[0] == "" {
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

// certificateHash returns the hash of the certificate to which a token is bound (RFC 8705). It
// returns "" if the token is not bound.
func (c claims) certificateHash() (string, error) {
	raw, ok := c.findClaim("cnf")
	if !ok {
		return "", nil
	}
	var confirmation claims
	if json.Unmarshal(raw, &confirmation) != nil {
		return "", errClaims
	}
	hash, err := confirmation.textClaim("x5t#S256")
	if err == nil && hash == "" {
		return "", errCertificate // the hub cannot verify what the token is bound to
	}
	return hash, err
}

func expiredError(now time.Time) error {
	return invalidTokenError("The token has expired; ask the issuer for a new one. If it is new, compare the clocks: the hub's clock says " + clockText(now) + ".")
}

func clockText(now time.Time) string { return now.UTC().Format(time.RFC3339) }
