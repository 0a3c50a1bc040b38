package node

import (
	"context"
	"net/url"
	"strings"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/cmd/node/doctor"
)

// checkIssuers fetches each issuer's keys, and compares the issuer's clock with
// this machine's clock.
func (d *diagnosis) checkIssuers(ctx context.Context) []doctor.Finding {
	var found []doctor.Finding
	for _, issuer := range d.cfg.OIDC.Issuers {
		found = append(found, d.checkIssuer(ctx, issuer)...)
	}
	return found
}

func (d *diagnosis) checkIssuer(ctx context.Context, issuer string) []doctor.Finding {
	u, err := url.Parse(issuer)
	if err != nil {
		return singleFinding(doctor.Fail(issuer, "it is not a URL", "correct oidc.issuer"))
	}
	if proxy, err := d.proxyOf(u); err != nil || proxy == nil {
		if f := d.lookUp(ctx, "oidc.issuer", u.Hostname()); f.State != doctor.OK {
			return singleFinding(f)
		}
	}
	e := endpoint{setting: "oidc.issuer", url: u, service: "the issuer"}
	if f := d.checkConnection(ctx, issuer, e)[0]; f.State == doctor.Fault {
		return singleFinding(f)
	}
	var found []doctor.Finding
	if f := d.compareClock(issuer, d.endpointAnswer(issuer)); f.State == doctor.Fault || f.State == doctor.Warning {
		found = append(found, f)
	}
	keys, err := identity.CheckIssuer(ctx, d.opts.network.issuers, issuer)
	if err != nil {
		text, remedy := err.Error(), "correct oidc.issuer: it is the claim iss of a token, character by character"
		if i := strings.LastIndex(text, "; "); i > 0 {
			text, remedy = text[:i], text[i+2:]
		}
		return append(found, doctor.Fail("oidc.issuer", "the keys of "+issuer+" cannot be used: "+text, remedy))
	}
	return append(found, doctor.Passed(issuer, "%d keys, for the audience %s", keys, strings.Join(d.cfg.OIDC.Audiences, ", ")))
}
