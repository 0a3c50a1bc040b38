package node

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetworkTriesTheAddressesOfAHost(t *testing.T) {
	var dialed []string
	n := newNetwork(&Options{
		LookUp: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "unknown" {
				return nil, errors.New("no such host")
			}
			return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			if address == "[2001:db8::1]:7" || address == "192.0.2.9:7" {
				near, _ := net.Pipe()
				return near, nil
			}
			return nil, errors.New("refused")
		},
	})
	dial := n.dialHost(new(net.Dialer))
	for _, address := range []string{"a.example:7", "192.0.2.9:7"} {
		_, err := dial(t.Context(), "tcp", address)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"192.0.2.1:7", "[2001:db8::1]:7", "192.0.2.9:7"}, dialed, "an address needs no look-up")
	_, err := dial(t.Context(), "tcp", "a.example:8")
	require.ErrorContains(t, err, "refused")
	_, err = dial(t.Context(), "tcp", "unknown:7")
	require.ErrorContains(t, err, "no such host")
	_, err = dial(t.Context(), "tcp", "a.example")
	require.ErrorContains(t, err, "missing port")
}

// A node must connect to the namespace's AMQP port: on Azure with TLS, to an
// emulator without TLS.
func TestNetworkDialsANamespaceAsItsClientWould(t *testing.T) {
	var dialed, serverName string
	refused := errors.New("enough is known")
	n := newNetwork(&Options{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		dialed = address
		near, far := net.Pipe()
		go func() {
			_ = tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
				serverName = hello.ServerName
				return nil, refused
			}}).HandshakeContext(context.WithoutCancel(t.Context()))
			_ = far.Close()
		}()
		return near, nil
	}})
	_, err := n.dialBus(t.Context(), "wss://a.example/$servicebus/websocket", false)
	require.Error(t, err)
	require.Equal(t, []string{"a.example:5671", "a.example"}, []string{dialed, serverName})
	for url, want := range map[string]string{"wss://a.example/": "a.example:5672", "wss://a.example:7/": "a.example:7"} {
		conn, err := n.dialBus(t.Context(), url, true)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Equal(t, want, dialed)
	}
}

func TestAConnectionStringSaysWhetherItIsOfAnEmulator(t *testing.T) {
	for text, want := range map[string]bool{
		"Endpoint=sb://a;UseDevelopmentEmulator=true": true, "usedevelopmentemulator = 1 ;Endpoint=sb://a": true,
		"Endpoint=sb://a;UseDevelopmentEmulator=false": false, "Endpoint=sb://a": false,
	} {
		require.Equal(t, want, isEmulator(text), text)
	}
}
