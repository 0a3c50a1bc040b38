package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// OIDC specifies which tokens the hub accepts. Without an issuer, the hub
// accepts no tokens, and trusts the header X-Actor-Id.
type OIDC struct {
	Issuers    []string // accepted issuers, spelled as in the claim iss
	Audiences  []string // accepted audiences; a token must contain one of them
	Tenants    []string // accepted Microsoft Entra tenants; empty for all tenants
	RolesClaim string
	ActorClaim string
}

// IsOn reports whether the hub accepts tokens.
func (o *OIDC) IsOn() bool { return len(o.Issuers) > 0 }

func defaultOIDC() OIDC { return OIDC{RolesClaim: "roles", ActorClaim: "actor"} }

// A wordsValue is a list of words separated by spaces or commas.
type wordsValue []string

func (v *wordsValue) String() string { return strings.Join(*v, " ") }

func (v *wordsValue) Set(s string) error {
	words := strings.FieldsFunc(s, isSeparator)
	if len(words) == 0 {
		return errors.New("want a text, or several with blanks between them; leave the key out for none")
	}
	for i, word := range words {
		if slices.Contains(words[:i], word) {
			return fmt.Errorf("%.200q stands there twice; keep one", word)
		}
	}
	*v = words
	return nil
}

// decode decodes a text or a list of texts.
func (v *wordsValue) decode(n *yaml.Node, _ string) error {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	texts := make([]string, len(items))
	for i, item := range items {
		item = resolveAlias(item)
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return errors.New("want a text, or a list of texts")
		}
		texts[i] = item.Value
	}
	return v.Set(strings.Join(texts, " "))
}

func (c *Config) validateOIDC(fault faultFunc) {
	o := &c.OIDC
	if !o.IsOn() {
		for _, name := range []string{"oidc.audience", "oidc.tenants", "oidc.roles-claim", "oidc.actor-claim", "actors"} {
			if !c.IsDefault(name) {
				fault(name, "there is no oidc.issuer to use it with; add that, or remove this")
			}
		}
		return
	}
	if len(o.Audiences) == 0 {
		fault("oidc.audience", "oidc.issuer needs it: without it, tokens for other services would count here; set it to what the claim aud of a token for this hub is")
	}
	if err := c.Actors.CheckIssuers(o.Issuers); err != nil {
		fault("actors", "%w", err)
	}
	for _, issuer := range o.Issuers {
		u, err := url.Parse(issuer)
		switch {
		case err != nil, u.Host == "", u.Scheme != "https" && u.Scheme != "http", u.User != nil, u.RawQuery != "", u.Fragment != "":
			fault("oidc.issuer", "want the URL of the issuer as the claim iss has it, such as https://login.microsoftonline.com/TENANT/v2.0")
		case u.Scheme == "http" && !loopback.IsDestination(u.Hostname()):
			fault("oidc.issuer", "keys that are fetched by http can be replaced on the way; use https")
		}
	}
}
