// Package service runs a whole node as it ships over an account that is measured, in
// this process and on loopback ports of its own.
//
// The node's documents are in the account, if there is one, and everything else in a folder that
// belongs to it alone. The caller that starts a Service stops it; that drains it, as an operator's
// stop does, and leaves the folder.
package service

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// AdminToken is the token of the operators of a Service.
const AdminToken = "token-of-the-operators" //nolint:gosec // of a hub that the bench starts

// Options say what a Service is.
type Options struct {
	Account   *account.Account   // nil: the embedded engine of the node, in Folder
	Database  string             // its containers are there
	Transport policy.Transporter // to the account
	Folder    string

	// Doors opens the bus and the exchange of the node to domains.
	Doors   bool
	Domains config.Domains // default: those of the energy market

	// Receivers has the node call receivers on loopback ports that subscribe.
	Receivers bool
	// Concurrency is the limit for the calls to one receiver; 0: the default of a node.
	Concurrency int

	Configure   func(*config.Config)            // changes the settings before the node starts; nil: as they are
	WrapHandler func(http.Handler) http.Handler // see node.Options
	NoChecks    bool                            // of readiness, which cost request units
}

// A Service is a node at work.
type Service struct {
	node *node.Node
	end  context.CancelFunc
	life sync.WaitGroup
	err  error
}

// Start starts a node.
func Start(ctx context.Context, o Options) (*Service, error) {
	opts := node.Options{Transport: o.Transport, PullOnly: !o.Receivers, WrapHandler: o.WrapHandler}
	if o.NoChecks {
		opts.ReadinessInterval = -1
	}
	hub, err := node.Open(ctx, o.nodeConfig(), opts)
	if err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	s := &Service{node: hub, end: end}
	s.life.Go(func() { s.err = hub.Run(living) })
	return s, nil
}

func (o *Options) nodeConfig() config.Config {
	c := config.Default()
	c.Listen, c.BusListen, c.BlobListen, c.Data, c.Domains = "127.0.0.1:0", "", "", o.Folder, o.Domains
	c.Admin.Token = AdminToken
	if o.Doors {
		c.BusListen, c.BlobListen = "127.0.0.1:0", "127.0.0.1:0"
	}
	if o.Receivers {
		c.Push.Allow, c.Push.InsecureHTTP = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, true
		c.Push.Concurrency = cmp.Or(o.Concurrency, c.Push.Concurrency)
	}
	if o.Account != nil {
		c.Cosmos = config.Cosmos{
			Endpoint: o.Account.Endpoint(), Key: config.Secret(o.Account.Key()), Database: o.Database, Consistency: o.Account.Consistency(),
		}
	}
	if o.Configure != nil {
		o.Configure(&c)
	}
	return c
}

// URL is where actors reach the node.
func (s *Service) URL() string { return s.node.URL() }

// AdminURL is where operators reach the node.
func (s *Service) AdminURL() string { return s.node.AdminURL() }

// Bus is where domains reach its bus, nil without doors.
func (s *Service) Bus() net.Addr { return s.node.BusAddr() }

// Exchange is where domains reach its exchange, nil without doors.
func (s *Service) Exchange() net.Addr { return s.node.BlobAddr() }

// Stop drains the node, closes it, and returns what its life ended with.
func (s *Service) Stop() error {
	s.end()
	s.life.Wait()
	return s.err
}
