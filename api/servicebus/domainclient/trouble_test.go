package domainclient

import (
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"
)

func TestPatience_PausesGrowWithInjectedJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pauses := func(random io.Reader) (all []time.Duration) {
			c, err := New(Options{Connect: ConnectionString(""), Random: random})
			require.NoError(t, err)
			p := c.newPatience()
			for range 10 {
				began := time.Now()
				require.True(t, p.wait(t.Context()))
				all = append(all, time.Since(began))
			}
			return all
		}
		low, high := pauses(sameBytes(0)), pauses(iotest.ErrReader(io.ErrUnexpectedEOF))
		require.Equal(t, low, high, "no randomness, no jitter")
		require.Equal(t, shortestPause/2, low[0])
		require.Equal(t, longestPause/2, low[9])
		for i, d := range pauses(sameBytes(0xa7)) {
			require.Greater(t, d, low[i])
			require.LessOrEqual(t, d, 2*low[i])
		}
	})
}

// sameBytes is a random source that repeats one byte.
type sameBytes byte

func (b sameBytes) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// After a lost connection, Microsoft's client may open a link before it has sent its token. Only
// repeated refusals end the task.
func TestAccessIsDeniedOnlyAfterRepeatedRefusals(t *testing.T) {
	lost := errors.New("the connection is lost")
	for _, refused := range []error{
		&azservicebus.Error{Code: azservicebus.CodeUnauthorizedAccess},
		&amqp.Error{Condition: amqp.ErrCondUnauthorizedAccess},
	} {
		var p patience
		for _, step := range []struct {
			err  error
			ends bool
		}{{refused, false}, {refused, false}, {lost, false}, {refused, false}, {refused, false}, {refused, true}} {
			require.Equal(t, step.ends, p.endsWith(step.err))
		}
	}
	var p patience
	require.True(t, p.endsWith(&azservicebus.Error{Code: azservicebus.CodeNotFound}), "what is not there is not there")
}
