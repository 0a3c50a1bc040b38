// Package service runs a complete node, as it ships, with a measured account. The node runs in
// this process and listens on loopback ports.
//
// The node's documents are in the account, if there is one, and all other data in a folder that
// only this node uses. The caller stops the Service; that drains the node, as an operator's stop
// does, and does not remove the folder.
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

// Options configure a Service.
type Options struct {
	Account   *account.Account   // if nil, the node uses its embedded engine, in Folder
	Database  string             // database with the node's containers
	Transport policy.Transporter // transport to the account
	Folder    string

	// Listeners makes the node listen for domains, at its bus and its exchange.
	Listeners bool
	Domains   config.Domains // default: the domains of the energy market

	// Receivers makes the node accept subscriptions whose receivers are on loopback ports.
	Receivers bool
	// Concurrency is the limit for concurrent calls to one receiver; 0 means the
	// default of a node.
	Concurrency int

	Configure   func(*config.Config)            // called before the node starts, to change its settings; may be nil
	WrapHandler func(http.Handler) http.Handler // see node.Options
	NoChecks    bool                            // disables the readiness checks, because they cost request units
}

// A Service is a running node.
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
	if o.Listeners {
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

// URL returns the URL of the node for actors.
func (s *Service) URL() string { return s.node.URL() }

// AdminURL returns the URL of the node for operators.
func (s *Service) AdminURL() string { return s.node.AdminURL() }

// Bus returns the address of the bus for domains, or nil without Listeners.
func (s *Service) Bus() net.Addr { return s.node.BusAddr() }

// Exchange returns the address of the exchange for domains, or nil without
// Listeners.
func (s *Service) Exchange() net.Addr { return s.node.BlobAddr() }

// Stop drains and closes the node, and returns the error with which it ended.
func (s *Service) Stop() error {
	s.end()
	s.life.Wait()
	return s.err
}
