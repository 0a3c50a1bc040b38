package config

import (
	"fmt"
	"net"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// RequireLoopback returns an error unless address is a loopback address. It is
// used for all unprotected listeners. The error contains the reason for the
// refusal, and otherwise: what to do instead of using a loopback address.
func RequireLoopback(address, reason, otherwise string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && !loopback.IsDestination(host) { // other checks refuse invalid addresses
		return fmt.Errorf("%s; use 127.0.0.1:%s, or %s", reason, port, otherwise)
	}
	return nil
}

// PortInUse returns the error for an address on which another process listens.
// flag is the flag that sets the address.
func PortInUse(address, flag string) error {
	return fmt.Errorf("listen on %s: another process has this port; stop that one, or choose another port with %s", address, flag)
}
