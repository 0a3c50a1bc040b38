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

// A bus is the namespace by which this node and the domains reach each other: one
// of Azure, or one of its own, which the domains reach by a door.
type bus struct {
	own  *embedded.Namespace // nil: Azure's
	door net.Listener        // nil: no door
	tls  *tls.Config         // of the door; nil: it has none
	open func() (*azservicebus.Client, error)
}

// clientOptions make a single attempt for each call: the callers retry, because they know what for.
func clientOptions() *azservicebus.ClientOptions {
	return &azservicebus.ClientOptions{ApplicationID: "messagehub", RetryOptions: servicebus.ClientRetries()}
}

// clientOptionsWithDial are clientOptions with a way to the bus.
func clientOptionsWithDial(dial func(context.Context) (net.Conn, error)) *azservicebus.ClientOptions {
	o := clientOptions()
	o.NewWebSocketConn = func(ctx context.Context, _ azservicebus.NewWebSocketConnArgs) (net.Conn, error) { return dial(ctx) }
	return o
}

// overNetwork are clientOptions by which a client reaches a namespace over the network of
// the node.
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

// isEmulator reports whether a connection string is one of an emulator, which speaks AMQP
// without TLS.
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

// wrapDial returns dial with its connections wrapped by wrap, or dial itself if wrap is nil.
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
	b := &bus{own: own, tls: opts.doorTLS(cfg.Bus)}
	if err := opts.folder.List(busFolder); err != nil {
		return nil, errors.Join(folderFault(cfg.Data, err), own.Close())
	}
	b.open = func() (*azservicebus.Client, error) {
		return azservicebus.NewClientFromConnectionString(own.ConnectionString(""), clientOptionsWithDial(wrapDial(own.Dial, opts.WrapBus)))
	}
	if b.door, err = openDoor(ctx, cfg, "bus-listen", cfg.BusListen, opts.Logger); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return b, nil
}

// busKeys returns the keys of a bus of this node's own: nil for the well-known one.
func busKeys(cfg *config.Config) []embedded.Key {
	if cfg.Bus.Key == "" {
		return nil
	}
	return []embedded.Key{{Name: embedded.WellKnownKeyName, Secret: cfg.Bus.Key.Reveal(), Rights: embedded.All}}
}

// doorTLS returns the TLS by which domains reach an engine of this node; nil for none. An engine
// with the well-known key is reached from this machine alone.
func (o *Options) doorTLS(engine config.OwnEngine) *tls.Config {
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
		client, err := open() // which makes no call, but reads the connection string
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

// configuredEntities returns the queues that a bus of this node's own has: those of the table. Their size
// is the default of the embedded bus.
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

// openDoor listens for domains at the address that key names. If only the default address is taken,
// the node runs without it.
func openDoor(ctx context.Context, cfg *config.Config, key, address string, logger *slog.Logger) (net.Listener, error) {
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

// serve lets domains in until ctx ends.
func (b *bus) serve(ctx context.Context) error {
	if b.door == nil {
		return nil
	}
	if err := b.own.Serve(ctx, b.door, embedded.ServeOptions{TLS: b.tls, TLSOnly: b.tls != nil}); err != nil {
		return fmt.Errorf("serve the bus on %s: %w", b.door.Addr(), err)
	}
	return nil
}

// failed yields an error when the node's own bus can no longer work. A node without one never
// yields.
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
	if b.door != nil {
		if err := b.door.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if b.own != nil {
		errs = append(errs, b.own.Close())
	}
	return errors.Join(errs...)
}
