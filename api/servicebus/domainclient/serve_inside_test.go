package domainclient

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The lock of a request is lost while the handler runs, and makeContent returns false. The next
// receiver of the request starts a new attempt with a new time limit.
func TestMakeContent_ReturnsFalseWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{})
		s := &serveLoop{handler: func(ctx context.Context, _ *Request) (io.Reader, error) {
			close(began)
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		var attempts sync.WaitGroup
		attempts.Go(func() {
			a, ok := s.makeContent(t.Context(), new(Request), 2*time.Second)
			assert.True(t, ok)
			assert.Equal(t, DatasetNotAvailable, a.Failure.Reason)
		})
		<-began
		holding, cancel := context.WithTimeout(t.Context(), time.Second) // this context ends when the lock would expire
		defer cancel()
		_, ok := s.makeContent(holding, new(Request), 20*time.Second)
		require.False(t, ok)
		attempts.Wait()
	})
}
