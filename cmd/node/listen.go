package node

import (
	"context"
	"net"
	"net/netip"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// openListener listens on an address. Errors name key, the setting that
// contains the address.
func openListener(ctx context.Context, address, key string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, explainListen(address, key, err)
	}
	return l, nil
}

// explainListen adds advice to an error of listening. key is the setting that
// contains the address.
func explainListen(address, key string, err error) error {
	return config.ListenError(address, "--"+key, err)
}

// reachableAddress returns an address at which clients on this machine can
// reach a listener on addr, which may be a wildcard address.
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

// configuredURL returns the URL of a node for clients on the same machine.
func configuredURL(cfg *config.Config) string {
	scheme := "http://"
	if cfg.TLS.Certificate != "" {
		scheme = "https://"
	}
	return scheme + reachableAddress(cfg.Listen)
}

// ownHosts returns a function that accepts only Host headers that name this
// machine. It returns nil if the hub also serves other machines; then any Host
// header is accepted.
func ownHosts(cfg *config.Config, addr net.Addr) func(host string) bool {
	if (cfg.Insecure || cfg.OIDC.IsOn()) && !loopback.IsAddr(addr) {
		return nil
	}
	return loopback.IsHost
}
