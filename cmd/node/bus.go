package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/messagehub/messagehub/api/servicebus"
	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
)

// A bus is the Service Bus namespace through which the node and the domains
// exchange messages: a namespace on Azure, or an embedded one with a listener
// for domains.
type bus struct {
	own      *embedded.Namespace // embedded namespace; nil if the namespace is on Azure
	listener net.Listener        // listener for domains; nil if they cannot connect
	tls      *tls.Config         // TLS settings of the listener; nil without TLS
	open     func() (*azservicebus.Client, error)
}

// clientOptions returns options with which a client attempts each call only
// once. The callers retry, because they know the purpose of the call.
func clientOptions() *azservicebus.ClientOptions {
	return &azservicebus.ClientOptions{ApplicationID: "messagehub", RetryOptions: servicebus.ClientRetries()}
}

// clientOptionsWithDial returns clientOptions for a client whose connections
// dial opens.
func clientOptionsWithDial(dial func(context.Context) (net.Conn, error)) *azservicebus.ClientOptions {
	o := clientOptions()
	o.NewWebSocketConn = func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return dial(ctx) }
	return o
}

// overNetwork returns the options of a client that reaches the namespace over
// the network.
func overNetwork(opts *Options, isEmulator bool) *azservicebus.ClientOptions {
	if opts.DialBus != nil {
		return clientOptionsWithDial(opts.DialBus)
	}
	o := clientOptions()
	if opts.busRetryDelay > 0 {
		o.RetryOptions.RetryDelay = opts.busRetryDelay
	}
	o.NewWebSocketConn = func(ctx context.Context, args azservicebus.NewWebSocketConnArgs) (net.Conn, error) {
		return opts.network.dialBus(ctx, args.Host, isEmulator)
	}
	return o
}

// isEmulator reports whether a connection string belongs to the Service Bus
// emulator, which speaks AMQP without TLS.
func isEmulator(connection string) bool {
	for part := range strings.SplitSeq(connection, ";") {
		name, value, _ := strings.Cut(part, "=")
		if strings.EqualFold(strings.TrimSpace(name), "UseDevelopmentEmulator") {
			is, err := strconv.ParseBool(strings.TrimSpace(value))
			return err == nil && is
		}
	}
	return false
}

// wrapDial returns a function that dials and wraps the connection. If wrap is
// nil, it returns dial itself.
func wrapDial(dial func(context.Context) (net.Conn, error), wrap func(net.Conn) net.Conn) func(context.Context) (net.Conn, error) {
	if wrap == nil {
		return dial
	}
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}
}

func openBus(ctx context.Context, cfg *config.Config, opts *Options) (_ *bus, err error) {
	if !cfg.EmbeddedBus() {
		return azureBus(ctx, cfg, opts)
	}
	dir := ""
	if !cfg.InMemory {
		dir = filepath.Join(cfg.Data, busFolder)
	}
	own, err := embedded.Open(embedded.Options{ //nolint:contextcheck // opening a folder cannot be cancelled
		Dir: dir, Claim: opts.folder.Claim(busFolder), Version: opts.Version, Keys: busKeys(cfg), Entities: configuredEntities(cfg), Logger: opts.Logger, Random: opts.randomFraction,
		MaxConnections: busConnections(cfg), MaxBuffered: int64(cfg.Limits.BusBuffer), TokenTimeout: cfg.Limits.BusTokenTimeout,
	})
	if err != nil {
		return nil, err
	}
	b := &bus{own: own, tls: opts.listenerTLS(cfg.Bus)}
	if err := opts.folder.List(busFolder); err != nil {
		return nil, errors.Join(folderFault(cfg.Data, err), own.Close())
	}
	b.open = func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(own.ConnectionString(""), clientOptionsWithDial(wrapDial(own.Dial, opts.WrapBus)))
	}
	if b.listener, err = listenForDomains(ctx, cfg, "bus-listen", cfg.BusListen, opts.Logger); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return b, nil
}

// busKeys returns the keys of the embedded bus, or nil if only the well-known
// key is valid.
func busKeys(cfg *config.Config) []embedded.Key {
	if cfg.Bus.Key == "" {
		return nil
	}
	return []embedded.Key{{Name: embedded.WellKnownKeyName, Secret: cfg.Bus.Key.Reveal(), Rights: embedded.All}}
}

// listenerTLS returns the TLS settings of an embedded engine's listener for
// domains, or nil for no TLS. An engine with the well-known key needs no TLS,
// because only this machine can reach it.
func (o *Options) listenerTLS(engine config.EmbeddedEngine) *tls.Config {
	if o.certificate == nil || engine.Key == "" {
		return nil
	}
	return o.certificate.config()
}

func azureBus(ctx context.Context, cfg *config.Config, opts *Options) (*bus, error) {
	if connection := cfg.ServiceBus.Connection.Reveal(); connection != "" {
		open := func() (*azservicebus.Client, error) {
			return azservicebus.NewClientFromConnectionString(connection, overNetwork(opts, isEmulator(connection)))
		}
		client, err := open() // open only parses the connection string, and does not connect
		if err != nil {
			return nil, errors.New("servicebus.connection: want a connection string, such as Endpoint=sb://NAME.servicebus.windows.net/;SharedAccessKeyName=…;SharedAccessKey=…")
		}
		return &bus{open: open}, client.Close(ctx)
	}
	credential, err := opts.identity()
	if err != nil {
		return nil, err
	}
	return &bus{open: func() (*azservicebus.Client, error) {
		return azservicebus.NewClient(cfg.ServiceBus.Namespace, credential, overNetwork(opts, false))
	}}, nil
}

// configuredEntities returns the queues of the embedded bus, which package
// deployment lists. They have the default size.
func configuredEntities(cfg *config.Config) embedded.Entities {
	var all embedded.Entities
	for _, q := range deployment.Queues(cfg) {
		setup := embedded.QueueSetup{Name: q.Name}
		p := &setup.Properties
		p.RequiresSession, p.DefaultMessageTimeToLive, p.DeadLetteringOnMessageExpiration = q.Sessions, q.TimeToLive, q.DeadLettersExpired
		p.LockDuration, p.MaxDeliveryCount = q.Lock, uint32(q.MaxDeliveries) //nolint:gosec // a small constant
		all.Queues = append(all.Queues, setup)
	}
	return all
}

// listenForDomains opens a listener for domains at an address. key is the
// setting that contains the address. If the default address is already in use,
// it logs a warning and returns no listener.
func listenForDomains(ctx context.Context, cfg *config.Config, key, address string, logger *slog.Logger) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := openListener(ctx, address, key)
	if err != nil && cfg.IsDefault(key) {
		logger.Warn("domains cannot reach this hub at the usual address", "key", key, "address", address, "error", err)
		return nil, nil
	}
	return l, err
}

// serve serves domains on the bus's listener until ctx ends.
func (b *bus) serve(ctx context.Context) error {
	if b.listener == nil {
		return nil
	}
	if err := b.own.Serve(ctx, b.listener, embedded.ServeOptions{TLS: b.tls, TLSOnly: b.tls != nil}); err != nil {
		return fmt.Errorf("serve the bus on %s: %w", b.listener.Addr(), err)
	}
	return nil
}

// failed returns a channel that receives an error when the embedded bus can no
// longer work. For a bus on Azure, the channel is nil.
func (b *bus) failed() <-chan error {
	if b.own == nil {
		return nil
	}
	return b.own.Broken()
}

func (b *bus) close() error {
	if b == nil {
		return nil
	}
	var errs []error
	if b.listener != nil {
		if err := b.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if b.own != nil {
		errs = append(errs, b.own.Close())
	}
	return errors.Join(errs...)
}
