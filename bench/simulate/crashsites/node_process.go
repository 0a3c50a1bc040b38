//go:build unix

package crashsites

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/bench/simulate/steps"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// The environment configures a child process, and its standard output reports its state.
const (
	ordersVariable = "CRASHPOINT_NODE"
	firstWords     = "ready"
	lastWords      = "dies"
)

// The origins of the events. Each origin has the content mode in its name.
const (
	manifest = "TimeSeries"
	inline   = "MeteringPoints"
	request  = "Charges"
)

// drawerCapacity is small, so that drawers are filled, sealed and drained often.
const drawerCapacity = 3

// operatorToken is the token of operators.
const operatorToken = "token-of-the-operators" //nolint:gosec // the token of a test hub

// tailEvents is the limit for the events of a tail: small, so that tails are flushed often.
const tailEvents = 2

// nodeOrders configure a child process.
type nodeOrders struct {
	Data                  string
	BusListen, BlobListen string // addresses of the embedded engines

	Cosmos, Bus, BusAddress, Blob string // addresses of external engines

	Retention, SweepEvery time.Duration

	TailEvents int // limit for the events of a cabinet in a head

	Step     steps.Name // step at which the process kills itself; "" means no kill
	When     When
	Nth      int64
	Sweeping bool
	Push     bool          // true if the hub calls receivers
	Objects  stage         // stage of a node that stores objects; "" means that the process is a hub
	Ahead    time.Duration // time by which the clock of a node that stores objects is ahead
}

// hubConfig returns the configuration of the hub.
func (o *nodeOrders) hubConfig() (config.Config, error) {
	cfg := config.Default()
	cfg.Data, cfg.BusListen, cfg.BlobListen, cfg.Retention = o.Data, o.BusListen, o.BlobListen, o.Retention
	cfg.Cosmos.TailEvents = o.TailEvents
	cfg.Push.InsecureHTTP, cfg.Push.Allow = true, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	cfg.Push.Delays = []time.Duration{0, 20 * time.Millisecond, 200 * time.Millisecond, time.Second, time.Second, time.Second, time.Second, time.Second}
	cfg.Watches.Period, cfg.Watches.Attempts = time.Second, 10
	cfg.Admin.Token = operatorToken
	cfg.Objects.Queue = "" // the hub receives events of objects by HTTP only
	if o.Cosmos != "" {
		cfg.Cosmos.Endpoint, cfg.Cosmos.Key = o.Cosmos, cosmosKey
		cfg.ServiceBus.Connection = config.Secret(o.Bus)
		cfg.Blob.Endpoint, cfg.Blob.Key = o.Blob, blobKey
	}
	for name, mode := range map[string]domain.ContentMode{inline: domain.Inline, request: domain.Request} {
		origin, err := domain.ParseOrigin(name)
		if err != nil {
			return cfg, err
		}
		cfg.Domains = append(cfg.Domains, config.Domain{Name: origin, Content: mode})
	}
	return cfg, nil
}

// nodeOptions returns options with the kill switch on every connection of the hub.
func (o *nodeOrders) nodeOptions(listener net.Listener) node.Options {
	f := &killSwitch{step: o.Step, when: o.When, sweeping: o.Sweeping, die: killSelf}
	f.left.Store(o.Nth)
	around := func(next policy.Transporter) policy.Transporter { return &killingTransport{next, f} }
	line := func(conn net.Conn) net.Conn { return newObservedConn(conn, f) }
	return node.Options{
		Listener: listener, DrawerCapacity: drawerCapacity, SweepEvery: o.SweepEvery, Grace: 5 * time.Second,
		PullOnly:          !o.Push,
		ReadinessInterval: -1, // the reads of readiness checks would trigger the kill switch
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		WrapTransport:     around, WrapBus: line,
		Transport: around(http.DefaultClient),
		DialBus: func(ctx context.Context) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", o.BusAddress)
			if err != nil {
				return nil, err
			}
			return line(conn), nil
		},
	}
}

// runNodeProcess runs a child process as a hub. The listener is file 3. The listener stays open when the hub dies, so
// the connections of callers wait for the next hub.
func runNodeProcess(text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var o nodeOrders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	cfg, err := o.hubConfig()
	if err != nil {
		return err
	}
	file := os.NewFile(3, "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if o.Objects != "" {
		return runObjectNodeProcess(ctx, &o, listener)
	}
	n, err := node.Open(ctx, cfg, o.nodeOptions(listener))
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1) // the parent process has ended
	}()
	fmt.Println(firstWords, addressOf(n.BusAddr()), addressOf(n.BlobAddr()))
	return n.Run(ctx)
}

func addressOf(a net.Addr) string {
	if a == nil {
		return "none"
	}
	return a.String()
}
