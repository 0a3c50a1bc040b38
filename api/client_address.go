package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// addressOf returns the address of the machine that sent a request. Each proxy appends the address
// of its caller to X-Forwarded-For. Behind trusted proxies, addressOf returns the last of these
// addresses that is not a trusted proxy. No trusted proxy has verified the addresses before it.
func (s *Server) addressOf(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return domain.Shorten(r.RemoteAddr)
	}
	addr := at.Addr()
	if !s.isTrustedProxy(addr) {
		return machineOf(addr)
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, text := range slices.Backward(hops) {
		hop, err := parseHop(strings.TrimSpace(text))
		if err != nil {
			break
		}
		if addr = hop; !s.isTrustedProxy(addr) {
			break
		}
	}
	return machineOf(addr)
}

func (s *Server) isTrustedProxy(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(s.opts.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseHop parses an address from X-Forwarded-For, to which some proxies add a port.
func parseHop(text string) (netip.Addr, error) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr(), nil
	}
	return netip.ParseAddr(text)
}

// machineOf returns an IPv4 address unchanged, and the network of an IPv6 address.
func machineOf(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() && !addr.IsLoopback() {
		if network, err := addr.Prefix(ipv6NetworkID); err == nil {
			return network.String()
		}
	}
	return addr.String()
}
