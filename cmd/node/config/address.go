package config

import (
	"fmt"
	"net"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// RequireLoopback returns an error if other machines can reach address. All
// listeners without protection use it. reason says why such an address is
// refused, and otherwise says what the caller can do instead of using a
// loopback address.
func RequireLoopback(address, reason, otherwise string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && !loopback.IsDestination(host) { // invalid addresses are refused elsewhere
		return fmt.Errorf("%s; use 127.0.0.1:%s, or %s", reason, port, otherwise)
	}
	return nil
}

// PortInUse returns the error of a program that cannot listen on address because another
// process does. flag is the flag that names the address.
func PortInUse(address, flag string) error {
	return fmt.Errorf("listen on %s: another process has this port; stop that one, or choose another port with %s", address, flag)
}
