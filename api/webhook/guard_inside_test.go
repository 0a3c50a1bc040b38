package webhook

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The system's dialer looks up a host name itself, so only the socket's check sees the address. It
// refuses a forbidden address.
func TestTheSystemsDialer_IsGuardedAtTheSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, address := range []string{l.Addr().String(), strings.Replace(l.Addr().String(), "127.0.0.1", "localhost", 1)} {
		_, err = systemDial(NewGuard())(t.Context(), "tcp", address)
		var blocked *BlockedError
		require.ErrorAs(t, err, &blocked, address)
		conn, err := systemDial(NewGuard(netip.MustParsePrefix("127.0.0.0/8")))(t.Context(), "tcp4", address)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	g := NewGuard()
	require.Error(t, g.checkConnect("udp4", "8.8.8.8:53", nil))
	require.Error(t, g.checkConnect("tcp4", "8.8.8.8", nil))
	require.NoError(t, g.checkConnect("tcp4", "8.8.8.8:53", nil))
}

func TestClose_EndsDials(t *testing.T) {
	c := New(Options{})
	c.Close()
	_, err := c.dialHost(t.Context(), "tcp", "8.8.8.8:443")
	require.ErrorContains(t, err, "operation was canceled")
}
