package identity_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/identity/identitytest"
)

// A silentIssuer accepts requests, but sends no response or only the header of one. The request
// ends when the client gives up.
type silentIssuer struct {
	*identitytest.Issuer
	sendsHeader, isSilent atomic.Bool
	requests              atomic.Int64
}

// Do implements identity.Doer.
func (i *silentIssuer) Do(r *http.Request) (*http.Response, error) {
	i.requests.Add(1)
	switch {
	case !i.isSilent.Load():
		answer := httptest.NewRecorder()
		i.ServeHTTP(answer, r)
		return answer.Result(), nil
	case i.sendsHeader.Load():
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(silentBody{r.Context()})}, nil
	}
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

type silentBody struct{ ctx context.Context }

func (s silentBody) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func TestSilentIssuer_DelaysOnlyRequestsWithUnknownKeys(t *testing.T) {
	for name, sendsHeader := range map[string]bool{"sends nothing": false, "sends no body": true} {
		issuer := &silentIssuer{Issuer: identitytest.Start(t)}
		issuer.sendsHeader.Store(sendsHeader)
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testSilentIssuer(t, issuer) })
		})
	}
}

func testSilentIssuer(t *testing.T, issuer *silentIssuer) {
	auth := identity.New(identity.Options{Issuers: []string{issuer.URL}, Audiences: []string{identitytest.Audience}, Client: issuer})
	show := func(token string) (time.Duration, error) {
		began := time.Now()
		_, err := auth.Authenticate(request(t, "/", "Bearer "+token))
		return time.Since(began), err
	}
	refuses := func(token string, after time.Duration) {
		t.Helper()
		took, err := show(token)
		var e *identity.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, identity.Unavailable, e.Kind)
		require.Equal(t, after, took)
	}

	// The issuer is silent, and no key is known yet.
	issuer.isSilent.Store(true)
	var waiting sync.WaitGroup
	for range 5 { // all these requests share one fetch of the keys
		waiting.Go(func() { refuses(issuer.Actor("a"), 10*time.Second) })
	}
	waiting.Wait()
	refuses(issuer.Actor("a"), 0)
	require.EqualValues(t, 1, issuer.requests.Load())
	<-time.After(30 * time.Second) // the wait advances the fake clock
	refuses(issuer.Actor("a"), 10*time.Second)

	// Once the keys were fetched, tokens with known keys are accepted immediately even if the
	// issuer is silent. A token with a new key is refused.
	issuer.isSilent.Store(false)
	<-time.After(30 * time.Second)
	known := issuer.Actor("a")
	_, err := show(known)
	require.NoError(t, err)
	issuer.isSilent.Store(true)
	fresh := issuer.Actor("b")
	issuer.Rotate()
	<-time.After(30 * time.Second)
	waiting.Go(func() { refuses(issuer.Actor("a"), 10*time.Second) })
	synctest.Wait() // the request for the keys has started
	for _, token := range []string{known, fresh} {
		took, err := show(token)
		require.NoError(t, err)
		require.Zero(t, took)
	}
	waiting.Wait()
	refuses(issuer.Actor("a"), 0)

	// Once the issuer responds again, the hub accepts the new token.
	issuer.isSilent.Store(false)
	<-time.After(30 * time.Second)
	_, err = show(issuer.Actor("a"))
	require.NoError(t, err)
}
