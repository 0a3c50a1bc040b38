package node

import (
	"context"
	"net"
	"net/netip"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// openListener opens the address that a key of the configuration names.
func openListener(ctx context.Context, address, key string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, explainListen(address, key, err)
	}
	return l, nil
}

// explainListen says what to do about an error of listening at the address that a key names.
func explainListen(address, key string, err error) error {
	return config.ListenError(address, "--"+key, err)
}

// reachableAddress returns an address at which a client on this machine finds a
// listener on addr, which may be all addresses.
func reachableAddress(addr string) string {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || !ap.Addr().IsUnspecified() {
		return addr
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if !ap.Addr().Is4() {
		loopback = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(loopback, ap.Port()).String()
}

// configuredURL returns the address at which a node with a configuration is reached on its machine.
func configuredURL(cfg *config.Config) string {
	scheme := "http://"
	if cfg.TLS.Certificate != "" {
		scheme = "https://"
	}
	return scheme + reachableAddress(cfg.Listen)
}

// ownHosts returns what decides about Host headers; nil if the hub is for other machines
// too and accepts all.
func ownHosts(cfg *config.Config, addr net.Addr) func(host string) bool {
	if (cfg.Insecure || cfg.OIDC.IsOn()) && !loopback.IsAddr(addr) {
		return nil
	}
	return loopback.IsHost
}
