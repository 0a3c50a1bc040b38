package config

import (
	"fmt"
	"net"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// RequireLoopback returns an error if address is not a loopback address. It is
// used for all listeners without protection. In the error, reason is the reason
// for the refusal, and otherwise is an alternative to using a loopback address.
func RequireLoopback(address, reason, otherwise string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && !loopback.IsDestination(host) { // ignores invalid addresses, which other checks refuse
		return fmt.Errorf("%s; use 127.0.0.1:%s, or %s", reason, port, otherwise)
	}
	return nil
}

// PortInUse returns the error for an address that another process listens on.
// flag is the flag that sets the address.
func PortInUse(address, flag string) error {
	return fmt.Errorf("listen on %s: another process has this port; stop that one, or choose another port with %s", address, flag)
}
