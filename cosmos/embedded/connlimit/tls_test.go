package connlimit_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
)

func TestLimiter_ClosesATLSConnectionOfABlockedClientImmediately(t *testing.T) {
	cert, err := certificate.New("localhost")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		below, silent := net.Pipe() // net.Pipe has no buffer, so a Write blocks until the client reads
		defer silent.Close()
		idle := tls.Server(below, cert.Config())
		hands := make(chan error)
		go func() { hands <- idle.Handshake() }()
		client := tls.Client(silent, &tls.Config{InsecureSkipVerify: true})
		go func() { _ = client.Handshake() }()
		require.NoError(t, <-hands)

		server := new(http.Server)
		connlimit.New(connlimit.Options{Limit: 1}).Attach(server)
		began := time.Now()
		server.ConnContext(context.Background(), idle)
		server.ConnState(idle, http.StateActive)
		server.ConnState(idle, http.StateIdle)
		next, other := net.Pipe()
		defer other.Close()
		require.False(t, connlimit.OverLimit(server.ConnContext(context.Background(), next)))
		require.Zero(t, time.Since(began))
		_, err := below.Write([]byte{1})
		require.Error(t, err, "it is closed")
	})
}
