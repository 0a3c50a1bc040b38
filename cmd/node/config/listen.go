package config

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// ListenError adds advice to an error of listening on address. flag is the flag
// that sets the address.
func ListenError(address, flag string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return PortInUse(address, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("listen on %s: this user may not open that port; choose one from 1024 on with %s", address, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("listen on %s: this machine does not have that address; choose one of its own with %s", address, flag)
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("listen on %s: there is no host %s; choose another address with %s", address, dns.Name, flag)
	}
	return fmt.Errorf("listen: %w; choose another address with %s", err, flag)
}
