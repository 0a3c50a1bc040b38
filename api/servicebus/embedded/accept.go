package embedded

import "net"

// accept serves the connections of listener until it is closed or fails.
func (s *serving) accept(listener net.Listener) error {
	for {
		nc, err := listener.Accept()
		if err != nil {
			return err
		}
		s.admit(nc)
	}
}
