package embedded_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
)

// endless are queries that run too long on any machine. Each one spends its time in a different part of the evaluation.
var endless = map[string]string{
	"rows of a JOIN":        "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l JOIN f IN c.l",
	"rows without a result": "SELECT VALUE a FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l JOIN f IN c.l WHERE a + b = -1",
	"a subquery":            "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE 1 FROM a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l WHERE a < 0)",
	"sorting":               "SELECT * FROM c WHERE NOT EXISTS(SELECT VALUE 1 FROM a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l WHERE a < 0) ORDER BY c.id",
}

// createList creates a document whose member l is a list of n elements.
func createList(t testing.TB, c *azcosmos.ContainerClient, n int) {
	t.Helper()
	createDocs(t, c, fmt.Appendf(nil, `{"id":"a","pk":"p","s":"x","l":[%s]}`, strings.TrimSuffix(strings.Repeat("1,", n), ",")))
}

func TestQuery_EndsWhenItsClientDisconnects(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{QuerySteps: math.MaxInt64})
	createList(t, c, 2000)
	began, ended := make(chan struct{}), make(chan struct{})
	account := engine.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(began)
		account.ServeHTTP(w, r)
		close(ended)
	}))
	t.Cleanup(server.Close)
	for name, text := range endless {
		began, ended = make(chan struct{}), make(chan struct{})
		req := queryRequest(t, engine, text, "[]")()
		host, err := url.Parse(server.URL)
		require.NoError(t, err)
		ctx, disconnect := context.WithCancel(t.Context())
		req = req.WithContext(ctx)
		req.URL.Host, req.Host, req.RequestURI = host.Host, "", ""
		go func() {
			<-began
			disconnect()
		}()
		_, err = server.Client().Do(req)
		require.ErrorIs(t, err, context.Canceled, name)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			require.Fail(t, "the query continues without its client", name)
		}
	}
}

func TestQuery_EndsWithItsContext(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{QuerySteps: math.MaxInt64})
	createList(t, c, 2000)
	for name, text := range endless {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := engine.Transport().Do(queryRequest(t, engine, text, "[]")().WithContext(ctx))
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
}

func TestChangeFeed_EndsWithItsContext(t *testing.T) {
	engine, c := openEngine(t, embedded.Options{})
	createDocs(t, c, newDoc("a", 1))
	ctx, cancel := context.WithCancel(t.Context())
	req := signedRequest(t, engine, "GET", docsPath, "docs", containerLink, "", "A-IM", "Incremental feed", "x-ms-documentdb-partitionkey", `["p"]`)
	answer := httptest.NewRecorder()
	engine.Handler().ServeHTTP(answer, req.WithContext(ctx))
	require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
	cancel()
	answer = httptest.NewRecorder()
	engine.Handler().ServeHTTP(answer, req.WithContext(ctx))
	require.Equal(t, http.StatusRequestTimeout, answer.Code, answer.Body.String())
}
