package cosmos

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

func TestMicrosoftsClientSendsNoWriteAgainThatMayHaveBeenCarriedOut(t *testing.T) {
	for _, errno := range []syscall.Errno{
		syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ECONNREFUSED,
		syscall.ECONNRESET, syscall.EPIPE,
	} {
		t.Run(errno.Error(), func(t *testing.T) {
			sent, err := sends(t, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", errno)})
			require.ErrorContains(t, err, errno.Error())
			require.Equal(t, 1, sent)
		})
	}
}

func TestMicrosoftsClientSendsAWriteAgainThatNeverLeft(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ECONNREFUSED} {
		t.Run(errno.Error(), func(t *testing.T) {
			sent, err := sends(t, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)})
			require.ErrorIs(t, err, errno)
			require.Greater(t, sent, 1)
		})
	}
}

// A breaking line breaks whenever a document is created.
type breaking struct {
	faulty.Doer
	with error
	sent int
}

func (b *breaking) Do(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost {
		return b.Doer.Do(req)
	}
	b.sent++
	return nil, &url.Error{Op: "Post", URL: req.URL.String(), Err: b.with}
}

// sends has the client create a document over a line that breaks with an error, and
// returns how often it does.
func sends(t *testing.T, with error) (sent int, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine, broken := embedded.Open(embedded.Options{})
		require.NoError(t, broken)
		defer func() { require.NoError(t, engine.Close()) }()
		line := &breaking{Doer: engine.Transport(), with: with}
		db, broken := Connect(Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: line})
		require.NoError(t, broken)
		defer db.Close()
		_, err = db.catalog.CreateItem(t.Context(), azcosmos.NewPartitionKeyString("p"), []byte(`{"id":"d"}`), nil)
		sent = line.sent
	})
	return sent, err
}
