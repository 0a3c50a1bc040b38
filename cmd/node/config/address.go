package config

import (
	"fmt"
	"net"
)

// RequireLoopback is the one rule for addresses that are not protected: it returns
// an error if other machines reach address. reason says what they could do, and
// otherwise what else the caller can do than listen to this machine alone.
func RequireLoopback(address, reason, otherwise string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && !isLoopback(host) { // an address that is not valid is refused elsewhere
		return fmt.Errorf("%s; use 127.0.0.1:%s, or %s", reason, port, otherwise)
	}
	return nil
}
