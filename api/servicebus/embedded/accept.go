package embedded

import "net"

// acceptLoop serves the connections of listener until the listener is closed or fails.
func (s *serveCall) acceptLoop(listener net.Listener) error {
	for {
		nc, err := listener.Accept()
		if err != nil {
			return err
		}
		s.admitConn(nc)
	}
}
