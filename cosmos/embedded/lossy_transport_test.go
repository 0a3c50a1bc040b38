package embedded_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// lossyClient returns a client for which about one in six calls fails: before, during or after its execution.
func lossyClient(t *testing.T, engine *embedded.Engine, overHTTP, lossy bool) *azcosmos.ContainerClient {
	var next policy.Transporter = engine.Transport()
	endpoint := engine.Endpoint()
	if overHTTP {
		server := httptest.NewServer(engine.Handler())
		t.Cleanup(server.Close)
		next, endpoint = server.Client(), server.URL
	}
	if lossy {
		next = &lossyTransport{next: next}
	}
	cred, err := azcosmos.NewKeyCredential(engine.Key())
	require.NoError(t, err)
	account, err := azcosmos.NewClientWithKey(endpoint, cred, &azcosmos.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: next, Retry: policy.RetryOptions{MaxRetries: -1}},
	})
	require.NoError(t, err)
	t.Cleanup(account.Close)
	c, err := account.NewContainer("db", "c")
	require.NoError(t, err)
	_, err = c.Read(t.Context(), nil) // the account document is read before requests begin to fail
	require.NoError(t, err)
	return c
}

var errLost = errors.New("the connection broke")

// lossyTransport makes some requests fail.
type lossyTransport struct {
	next policy.Transporter
	n    atomic.Uint64
}

func (l *lossyTransport) Do(req *http.Request) (*http.Response, error) {
	if req.Header.Get("x-ms-documentdb-partitionkey") == "" {
		return l.next.Do(req)
	}
	random := rand.New(rand.NewPCG(l.n.Add(1), 0))
	switch random.IntN(18) {
	case 0: // the request does not arrive
		return nil, errLost
	case 1: // the response does not arrive
		if answer, err := l.next.Do(req); err == nil {
			_ = answer.Body.Close()
		}
		return nil, errLost
	case 2: // the client cancels after a random time
		ctx, cancel := context.WithCancel(req.Context())
		var giving sync.WaitGroup
		giving.Go(cancel)
		answer, err := l.next.Do(req.WithContext(ctx))
		giving.Wait()
		if err == nil {
			_ = answer.Body.Close()
		}
		return nil, errLost
	}
	return l.next.Do(req)
}
