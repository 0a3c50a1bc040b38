package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
)

// An operatorListener serves only operators and their tools. It has its own
// connection limit, so that health probes are answered even while the listener
// for actors and domains is full.
type operatorListener struct {
	listener    net.Listener
	handler     *drainHandler
	connections *connlimit.Limiter
}

// openOperators opens the operators' listener. It returns nil if none is
// configured.
func openOperators(ctx context.Context, cfg *config.Config) (*operatorListener, error) {
	if !cfg.HasOperatorListener() {
		return nil, nil //nolint:nilnil // all is on one listener
	}
	l, err := openListener(ctx, cfg.AdminListen, "admin-listen")
	if err != nil {
		return nil, err
	}
	return &operatorListener{listener: l, connections: connlimit.New(operatorConnections())}, nil
}

func (o *operatorListener) close() error {
	if o == nil {
		return nil
	}
	if err := o.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// AdminAddr returns the address of the operators' listener, or nil if the node
// has only one listener.
func (n *Node) AdminAddr() net.Addr {
	if n.operators == nil {
		return nil
	}
	return n.operators.listener.Addr()
}

// AdminURL returns the node's URL for an operator on this machine.
func (n *Node) AdminURL() string {
	if n.operators == nil {
		return n.URL()
	}
	return n.urlAt(n.operators.listener.Addr())
}

// newOperatorServer returns the server for the operators' listener, or nil if
// the node has only one listener.
func (n *Node) newOperatorServer(requests context.Context) *http.Server {
	if n.operators == nil {
		return nil
	}
	return n.newServer(requests, n.operators.handler, n.operators.listener.Addr(), n.operators.connections)
}

// serveOperators serves operators until the server is closed.
func (n *Node) serveOperators(server *http.Server) error {
	if server == nil {
		return nil
	}
	if err := n.serve(server, n.operators.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve operators on %s: %w", n.operators.listener.Addr(), err)
	}
	return nil
}

// stopOperators waits until requests in progress are complete, or ctx ends.
func (n *Node) stopOperators(ctx context.Context, server *http.Server) {
	if server == nil {
		return
	}
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
	n.operators.handler.closeAndWait()
}
