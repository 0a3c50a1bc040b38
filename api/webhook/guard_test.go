package webhook_test

import (
	"math/rand/v2"
	"net/netip"
	"syscall"
	"testing"
	_ "unsafe" // for go:linkname

	"github.com/doyensec/safeurl"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/webhook"
)

// specialAddresses contains addresses from all blocks in IANA's special-purpose registries, other
// notations of these addresses and tunnels to them, and addresses of cloud metadata services.
var specialAddresses = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255",
	"127.0.0.1", "127.1.2.3", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255",
	"192.0.0.1", "192.0.0.8", "192.0.0.170", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1",
	"192.168.0.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
	"224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",

	"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:168.63.129.16", "::ffff:8.8.8.8",
	"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "100:0:0:1::1", "2001::1", "2001:0:7f00:1::", "2001:1::1",
	"2001:2::1", "2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1", "2001:db8::1",
	"2002:7f00:1::1", "2002:a9fe:a9fe::", "2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254",
	"fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "2a00::5efe:7f00:1", "2a00::200:5efe:a9fe:a9fe",
}

var public = []string{"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "128.0.0.1", "168.63.129.15", "172.15.0.1", "172.32.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "2a00::5efe:808:808"}

func TestGuard_RefusesSpecialAddresses(t *testing.T) {
	g := webhook.NewGuard()
	for _, a := range specialAddresses {
		require.Error(t, g.Check(netip.MustParseAddr(a)), a)
	}
	for _, a := range public {
		require.NoError(t, g.Check(netip.MustParseAddr(a)), a)
	}
	require.Error(t, g.Check(netip.Addr{}))
}

func TestGuard_AllowsConfiguredRangesButNoMetadata(t *testing.T) {
	g := webhook.NewGuard(netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("168.63.0.0/16"))
	for _, a := range []string{"10.1.2.3", "fd12::1", "169.254.1.1", "8.8.8.8"} {
		require.NoError(t, g.Check(netip.MustParseAddr(a)), a)
	}
	for _, a := range []string{"10.2.0.1", "127.0.0.1", "169.254.169.254", "168.63.129.16", "fd00:ec2::254", "::ffff:10.1.2.3"} {
		require.Error(t, g.Check(netip.MustParseAddr(a)), a)
	}
}

//go:linkname safeurlControl github.com/doyensec/safeurl.buildRunFunc
func safeurlControl(*safeurl.WrappedClient) func(network, address string, _ syscall.RawConn) error

// The guard refuses all addresses that safeurl, an independent implementation, refuses. It refuses
// further addresses only in ranges that safeurl does not know.
func TestGuard_RefusesWhatSafeurlRefuses(t *testing.T) {
	refuses := safeurlControl(safeurl.Client(safeurl.GetConfigBuilder().SetAllowedPorts(443).EnableIPv6(true).Build()))
	unknown := newGuardOnlyCheck(t)
	g := webhook.NewGuard()
	rng := rand.New(rand.NewPCG(1, 2))
	n := 200_000
	if hasRaceDetector {
		n = 10_000
	}
	for range n {
		a := randomAddr(rng)
		network := "tcp6"
		if a.Is4() {
			network = "tcp4"
		}
		theirs := refuses(network, netip.AddrPortFrom(a, 443).String(), nil)
		ours := g.Check(a)
		if theirs != nil {
			require.Error(t, ours, "%s: safeurl says %v", a, theirs)
			continue
		}
		require.Equal(t, unknown(a), ours != nil, a)
	}
}

// newGuardOnlyCheck returns a function that reports whether an address is in a range that the guard
// refuses and safeurl does not know.
func newGuardOnlyCheck(t *testing.T) func(netip.Addr) bool {
	var prefixes []netip.Prefix
	for _, text := range []string{
		"192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", "168.63.129.16/32", // ranges from IANA's registries, and Azure's host agent
		"::/3", "4000::/2", "8000::/1", "2620:4f:8000::/48", "3fff::/20", // ranges outside of global unicast, and further ranges from IANA's registries
	} {
		p, err := netip.ParsePrefix(text)
		require.NoError(t, err)
		prefixes = append(prefixes, p)
	}
	return func(a netip.Addr) bool {
		for _, p := range prefixes {
			if p.Contains(a) {
				return true
			}
		}
		return false
	}
}

// randomAddr returns a random address. In two of three cases, it is a special address with a few
// changed bits.
func randomAddr(rng *rand.Rand) netip.Addr {
	if rng.IntN(3) > 0 {
		a := netip.MustParseAddr(specialAddresses[rng.IntN(len(specialAddresses))]).WithZone("")
		b := a.AsSlice()
		for range rng.IntN(4) {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		a, _ = netip.AddrFromSlice(b)
		if !isISATAP(a) {
			return a
		}
	}
	b := make([]byte, []int{4, 16}[rng.IntN(2)])
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// isISATAP reports whether an address is an ISATAP tunnel address, which safeurl does not
// recognize.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return a.Is6() && b[10] == 0x5e && b[11] == 0xfe
}
