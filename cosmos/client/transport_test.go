package client

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
)

func TestAzcosmos_ResendsNoWriteThatMayHaveBeenApplied(t *testing.T) {
	broken := []error{tls.RecordHeaderError{Msg: "unsupported TLS version"}}
	for _, errno := range []syscall.Errno{
		syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ECONNREFUSED,
		syscall.ECONNRESET, syscall.EPIPE,
	} {
		broken = append(broken, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", errno)})
	}
	for _, with := range broken {
		for where, isAnswered := range map[string]bool{"before the answer": false, "in the answer": true} {
			for what, write := range differentWrites {
				t.Run(with.Error()+", "+where+" to "+what, func(t *testing.T) {
					sent, err := countSends(t, write, brokenConnection{with: with, isAnswered: isAnswered})
					require.ErrorContains(t, err, with.Error())
					require.Equal(t, 1, sent)
				})
			}
		}
	}
}

func TestAzcosmos_ResendsAWriteThatWasNotSent(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ECONNREFUSED} {
		t.Run(errno.Error(), func(t *testing.T) {
			with := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
			sent, err := countSends(t, differentWrites["a replacement"], brokenConnection{with: with})
			require.ErrorIs(t, err, errno)
			require.Greater(t, sent, 1)
		})
	}
}

// differentWrites are writes whose responses azcosmos reads by different code.
var differentWrites = map[string]func(*testing.T, *azcosmos.ContainerClient) error{
	"a replacement": func(t *testing.T, container *azcosmos.ContainerClient) error {
		_, err := container.ReplaceItem(t.Context(), azcosmos.NewPartitionKeyString("p"), "d", []byte(`{"id":"d"}`), nil)
		return err
	},
	"a batch": func(t *testing.T, container *azcosmos.ContainerClient) error {
		batch := container.NewTransactionalBatch(azcosmos.NewPartitionKeyString("p"))
		batch.CreateItem([]byte(`{"id":"d"}`), nil)
		_, err := container.ExecuteTransactionalBatch(t.Context(), batch, nil)
		return err
	},
}

// A brokenConnection breaks at every write.
type brokenConnection struct {
	faulty.Doer
	with       error
	isAnswered bool // whether the connection breaks during the response, not during the request
	sent       int
}

func (b *brokenConnection) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return b.Doer.Do(req)
	}
	b.sent++
	if b.isAnswered {
		return &http.Response{StatusCode: http.StatusOK, Request: req, Body: io.NopCloser(iotest.ErrReader(b.with))}, nil
	}
	return nil, &url.Error{Op: req.Method, URL: req.URL.String(), Err: b.with}
}

// countSends makes the client write over a broken connection, and returns the number of requests that
// the client sent.
func countSends(t *testing.T, write func(*testing.T, *azcosmos.ContainerClient) error, line brokenConnection) (sent int, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine, broken := embedded.Open(embedded.Options{})
		require.NoError(t, broken)
		defer func() { require.NoError(t, engine.Close()) }()
		line.Doer = engine.Transport()
		db, broken := Connect(Connection{Endpoint: engine.Endpoint(), Key: engine.Key(), Transport: &line})
		require.NoError(t, broken)
		defer db.Close()
		container, broken := db.Container("orders")
		require.NoError(t, broken)
		err = write(t, container)
		sent = line.sent
	})
	return sent, err
}
