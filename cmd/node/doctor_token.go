package node

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/cmd/node/doctor"
)

// A tokenClaims contains the claims of a Microsoft Entra token that tell an
// operator whose token it is. These values are not secret.
type tokenClaims struct {
	Audience    audiences `json:"aud"`
	Issuer      string    `json:"iss"`
	Tenant      string    `json:"tid"`
	Object      string    `json:"oid"`
	Application string    `json:"appid"` // client id; only in version 1 tokens
	Client      string    `json:"azp"`   // client id; only in version 2 tokens
	Kind        string    `json:"idtyp"`
	User        string    `json:"upn"`
	NotBefore   float64   `json:"nbf"` // seconds since 1970
	Expires     float64   `json:"exp"` // seconds since 1970
}

// An audiences is a list of texts. In JSON, it may also be one string.
type audiences []string

// UnmarshalJSON decodes a string, or a list of strings.
func (a *audiences) UnmarshalJSON(text []byte) error {
	var word string
	if json.Unmarshal(text, &word) == nil {
		*a = audiences{word}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// readClaims returns the claims of a JSON web token. It does not verify the
// signature; the service to which the token is sent verifies it.
func readClaims(token string) (c tokenClaims, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	return c, err == nil && json.Unmarshal(payload, &c) == nil
}

// checkToken requests a token for a service, and checks the token's claims.
func (d *diagnosis) checkToken(ctx context.Context, e endpoint) []doctor.Finding {
	if e.scope == "" {
		return singleFinding(doctor.Passed("", "a key is used, and no token"))
	}
	credential, err := d.opts.identity()
	if err != nil {
		text, remedy := splitRemedy(err.Error())
		return singleFinding(doctor.Fail("", text, remedy))
	}
	token, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{e.scope}})
	if err != nil {
		return singleFinding(doctor.Fail("", "no token for "+e.service+": "+shortTokenError(err), "give this machine an identity: a managed identity, workload identity, or the AZURE_ variables; on a developer's machine run az login"))
	}
	c, isReadable := readClaims(token.Token)
	if !isReadable {
		return singleFinding(doctor.Passed("", "a token that is valid until %s", token.ExpiresOn.UTC().Format(time.DateTime)))
	}
	return d.tokenFindings(e, &c)
}

// tokenFindings returns a finding for each fault of a token. If none exists,
// it returns a finding that describes the token's claims.
func (d *diagnosis) tokenFindings(e endpoint, c *tokenClaims) []doctor.Finding {
	now := d.clock()
	application := c.Application
	if application == "" {
		application = c.Client
	}
	who := fmt.Sprintf("application %s, object %s, tenant %s", application, c.Object, c.Tenant)
	var found []doctor.Finding
	if !slices.ContainsFunc(c.Audience, func(a string) bool { return isAudience(a, e.scope) }) {
		found = append(found, doctor.Fail("aud", fmt.Sprintf("the token is for %s, and %s needs one for %s", strings.Join(c.Audience, ", "), e.service, strings.TrimSuffix(e.scope, "/.default")),
			"check "+e.setting+", and what grants tokens on this machine"))
	}
	if c.NotBefore > 0 && now.Before(unixTime(c.NotBefore).Add(-riskySkew)) {
		found = append(found, doctor.Fail("nbf", fmt.Sprintf("the token is valid from %s on, by this machine's clock in %s", unixTime(c.NotBefore).Format(time.DateTime), unixTime(c.NotBefore).Sub(now).Round(time.Second)),
			"synchronize the clock of this machine"))
	}
	if c.Expires > 0 && !now.Before(unixTime(c.Expires)) {
		found = append(found, doctor.Fail("exp", "the token has expired at "+unixTime(c.Expires).Format(time.DateTime), "synchronize the clock of this machine, and check what grants tokens on it"))
	}
	if c.User != "" || c.Kind == "user" {
		found = append(found, doctor.Warn("identity", "the token is that of a person ("+who+")", "give this machine an identity of its own, and set production to use no other"))
	}
	return passedUnless(found, "%s, for %s, until %s", who, strings.Join(c.Audience, ", "), unixTime(c.Expires).Format(time.DateTime))
}

// isAudience reports whether a service with this scope accepts a token for
// audience. Azure accepts the URL with and without a final slash. Some services
// also accept an application id; these ids are unknown here, so isAudience
// accepts any id.
func isAudience(audience, scope string) bool {
	want, err := url.Parse(strings.TrimSuffix(scope, "/.default"))
	if err != nil {
		return true
	}
	has, err := url.Parse(audience)
	if err != nil || has.Host == "" {
		return true // may be the service's application id
	}
	return strings.EqualFold(has.Host, want.Host) || strings.HasSuffix(want.Host, ".documents.azure.com") && has.Host == "cosmos.azure.com"
}

func unixTime(seconds float64) time.Time { return time.Unix(int64(seconds), 0).UTC() }

// shortTokenError returns the first part of an azidentity error, without its
// separator lines. The complete error describes every credential that
// azidentity tried.
func shortTokenError(err error) string {
	const limit = 600
	words := slices.DeleteFunc(strings.Fields(err.Error()), func(word string) bool { return strings.Trim(word, "-") == "" })
	text := strings.Join(words, " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}
