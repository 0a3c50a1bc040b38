package webhook

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"code.dny.dev/ssrf"
)

// A Guard decides which addresses may be called: public addresses, and addresses in configured
// ranges.
type Guard struct {
	guardian *ssrf.Guardian
}

// metadata contains the addresses from which cloud services issue credentials to their machines. No
// configuration allows these addresses.
var metadata = []netip.Addr{
	netip.MustParseAddr("168.63.129.16"),   // Azure's host agent, which has a public address
	netip.MustParseAddr("169.254.169.254"), // Azure, AWS, Google
	netip.MustParseAddr("169.254.170.2"),   // containers on AWS
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
}

// NewGuard returns a Guard that allows public addresses and the ranges in allowed.
func NewGuard(allowed ...netip.Prefix) *Guard {
	var v4, v6 []netip.Prefix
	for _, prefix := range allowed {
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	return &Guard{ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))}
}

// A BlockedError means that an address must not be called.
type BlockedError struct{ Addr netip.Addr }

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%s may not be called; use a public address, or have operators add its range to the setting push.allow", e.Addr)
}

// Check returns a *BlockedError if addr must not be called.
func (g *Guard) Check(addr netip.Addr) error {
	if !addr.IsValid() || slices.Contains(metadata, addr.Unmap().WithZone("")) || g.guardian.SafeAddr(addr) != nil {
		return &BlockedError{addr}
	}
	if inner, ok := isatapTarget(addr); ok && g.Check(inner) != nil {
		return &BlockedError{addr}
	}
	return nil
}

// checkConnect is the Control function of a net.Dialer. It checks the address to which a socket is
// about to connect.
func (g *Guard) checkConnect(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("a receiver is called over TCP, not over %s", network)
	}
	dialed, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return g.Check(dialed.Addr())
}

// isatapTarget returns the IPv4 address that an ISATAP address (RFC 5214) contains. Package ssrf
// already refuses other tunnel addresses.
func isatapTarget(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	if b[8]&^2 != 0 || b[9] != 0 || b[10] != 0x5e || b[11] != 0xfe {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte(b[12:])), true
}
