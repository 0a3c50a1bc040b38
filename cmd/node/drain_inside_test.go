package node

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestANodeThatStops_AnswersForTheDrainDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		n := &Node{handler: &drainHandler{next: answers}, drainDelay: time.Minute}
		ask := func() *http.Response {
			w := httptest.NewRecorder()
			n.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/peek", http.NoBody))
			return w.Result()
		}
		require.Empty(t, ask().Header.Get("Connection"))
		began, ended := time.Now(), make(chan struct{})
		go func() {
			defer close(ended)
			n.serveUntilMoved(t.Context())
		}()
		synctest.Wait()
		resp := ask()
		require.Equal(t, http.StatusNoContent, resp.StatusCode)
		require.Equal(t, "close", resp.Header.Get("Connection"), "the client opens another connection, elsewhere")
		<-ended
		require.Equal(t, time.Minute, time.Since(began))
	})
}
