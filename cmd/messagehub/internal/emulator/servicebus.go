package emulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
)

// ServiceBus configures the emulator of a Service Bus namespace.
type ServiceBus struct {
	Options

	Listen    []string         // HOST:PORT of each listener
	Key       string           // secret of the key that permits everything; "": the well-known secret
	Engine    embedded.Options // Engine.Keys lists further keys; Engine.Logger is ignored
	Entities  string           // file with the entities to create; "": no file
	TLS       bool             // permit TLS, with a self-signed certificate
	CertFile  string           // file that receives the certificate; "": no file
	LogFrames bool             // print each AMQP frame to Err
}

// openReason returns why any client that reaches the namespace can use it. It
// returns "" if the namespace requires a secret key.
func (b *ServiceBus) openReason() string {
	switch {
	case b.Engine.Anonymous:
		return "--anonymous gives every client all rights"
	case b.Engine.TrustTokens:
		return trustsTokens
	case b.key() == embedded.WellKnownKey:
		return knownKey
	}
	return ""
}

func (b *ServiceBus) key() string { return cmp.Or(b.Key, embedded.WellKnownKey) }

// Run serves the namespace until ctx ends or one listener fails. It fails if
// the options are invalid.
func (b *ServiceBus) Run(ctx context.Context) (err error) {
	if err := b.Validate(); err != nil { //nolint:contextcheck // it opens a namespace in memory, for a moment
		return err
	}
	o, err := b.engineOptions()
	if err != nil {
		return err
	}
	serving, err := b.serveOptions()
	if err != nil {
		return err
	}
	namespace, err := embedded.Open(o) //nolint:contextcheck // opening is not to be given up half-way
	if err != nil {
		return openError(o.Dir, err)
	}
	defer func() { err = errors.Join(err, namespace.Close()) }()
	listeners, err := b.listenAll(ctx)
	if err != nil {
		return err
	}
	handler := busHandler(namespace)
	serving.AnyHost = true // any host is accepted here, because the HTTP handler calls checkHosts
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, len(listeners))
	for _, listener := range listeners {
		serving.HTTP = b.checkHosts(listener.Addr(), handler)
		go func(serving embedded.ServeOptions) { served <- namespace.Serve(ctx, listener, serving) }(serving)
	}
	shown := namespace.ConnectionString(listeners[0].Addr().String())
	if b.key() != embedded.WellKnownKey {
		shown = strings.ReplaceAll(shown, b.key(), ownKey)
	}
	fmt.Fprintf(b.Out, "Service Bus emulator %s listens on %s with connection string %s\n", b.Version, addressList(listeners), shown)
	b.Logger.InfoContext(ctx, "ready", "address", addressList(listeners))
	for range listeners {
		err = errors.Join(err, <-served)
		cancel() // if one listener fails, all listeners are closed
	}
	return err
}

// engineOptions returns the options of the engine, including the key, the
// entities from the file, and the log of frames.
func (b *ServiceBus) engineOptions() (embedded.Options, error) {
	o := b.Engine
	o.Keys = append([]embedded.Key{{Name: embedded.WellKnownKeyName, Secret: b.key(), Rights: embedded.All}}, o.Keys...)
	o.Logger = b.Logger
	var err error
	if o.Entities, err = b.readEntities(); err != nil {
		return o, err
	}
	if b.LogFrames {
		var printing sync.Mutex
		o.Frames = func(line string) {
			printing.Lock()
			defer printing.Unlock()
			fmt.Fprintln(b.Err, line)
		}
	}
	return o, nil
}

// readEntities reads the file Entities, if it is set.
func (b *ServiceBus) readEntities() (embedded.Entities, error) {
	if b.Entities == "" {
		return embedded.Entities{}, nil
	}
	file, err := os.Open(b.Entities)
	if err != nil {
		return embedded.Entities{}, fmt.Errorf("--entities: %w", err)
	}
	defer func() { _ = file.Close() }() // opened for reading only
	entities, err := embedded.ReadEntities(file)
	if err != nil {
		return entities, fmt.Errorf("--entities: %s: %w", b.Entities, err)
	}
	return entities, nil
}

func (b *ServiceBus) serveOptions() (embedded.ServeOptions, error) {
	if !b.TLS {
		return embedded.ServeOptions{}, nil
	}
	cert, err := selfSigned(b.Engine.Dir, b.CertFile, b.Listen...)
	if err != nil {
		return embedded.ServeOptions{}, err
	}
	return embedded.ServeOptions{TLS: cert.Config()}, nil
}

// listenAll opens a listener for each address. If one address fails, it closes
// the listeners that it has opened.
func (b *ServiceBus) listenAll(ctx context.Context) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range b.Listen {
		listener, err := openListener(ctx, address)
		if err == nil {
			listeners = append(listeners, listener)
			continue
		}
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	return listeners, nil
}

func addressList(listeners []net.Listener) string {
	all := make([]string, len(listeners))
	for i, l := range listeners {
		all[i] = l.Addr().String()
	}
	return strings.Join(all, ", ")
}

// busHandler returns a handler for /healthz, /metrics and the namespace's HTTP
// requests.
func busHandler(namespace *embedded.Namespace) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeHealth(w) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(busMetrics(namespace), promhttp.HandlerOpts{}))
	mux.Handle("/", namespace.Handler())
	return mux
}
