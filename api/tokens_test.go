package api_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/identity/identitytest"
	"github.com/messagehub/messagehub/domain/hub"
)

// tokens contains the issuer, a token and the clock of a server that accepts tokens.
type tokens struct {
	issuer *identitytest.Issuer
	all    string        // token with the rights of the usual actor, of the domain TimeSeries and of operators
	ahead  *atomic.Int64 // how far the clock that checks the expiry of tokens is ahead, in nanoseconds
}

// advance moves the clock that checks the expiry of tokens ahead by d.
func (k *tokens) advance(d time.Duration) { k.ahead.Add(int64(d)) }

// serveTokens starts a server that accepts the tokens of an issuer. change may modify its options.
// The server gives all requests the same id.
func serveTokens(t *testing.T, change ...func(*api.Options, *hub.Options)) *hubFixture {
	t.Helper()
	return serveIdentity(t, nil, change...)
}

// serveIdentity is like serveTokens. alter may modify the options of package identity.
func serveIdentity(t *testing.T, alter func(*identity.Options), change ...func(*api.Options, *hub.Options)) *hubFixture {
	t.Helper()
	k := &tokens{issuer: identitytest.Start(t), ahead: new(atomic.Int64)}
	k.all = k.issuer.Token(identitytest.Claims{"roles": []string{"actor", "domain:TimeSeries", "operator", "metrics"}, "actor": actor})
	options := identity.Options{
		Issuers: []string{k.issuer.URL}, Audiences: []string{identitytest.Audience}, Client: http.DefaultClient,
		Clock: func() time.Time { return time.Now().Add(time.Duration(k.ahead.Load())) },
	}
	if alter != nil {
		alter(&options)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	f := serve(t, append(change, func(o *api.Options, _ *hub.Options) {
		o.Identity = identity.New(options)
		o.NewRequestID = func() string { return "YKAB2SP4DFYGV5GM6ILCPQCICH" }
		if o.Limits.FailedTokens == 0 {
			o.Limits.FailedTokens = 1_000_000 // the limit does not apply, because tests send many invalid tokens
		}
	})...)
	f.tokens = k
	return f
}
