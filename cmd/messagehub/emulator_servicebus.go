package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// A busEmulator is what the flags of messagehub emulator servicebus say.
type busEmulator struct {
	listen         []string
	data, entities string
	inMemory       bool
	createOnUse    bool
	tls            bool
	cert           string
	access         emulatorAccess
	keys           []string
	anonymous      bool
	trustTokens    bool
	logFrames      bool
	limits         busLimits
}

func (p *process) emulatorServiceBusCommand() *cobra.Command {
	var e busEmulator
	cmd := &cobra.Command{
		Use:   "servicebus",
		Short: "Run a Service Bus namespace",
		Long: "Run a Service Bus namespace that any client can use: AMQP with and without TLS, AMQP over\n" +
			"WebSockets, and the management of entities over HTTP, all on one port.\n\n" +
			"A folder is one namespace. What was accepted is on disk and survives kill -9.\n" +
			"Entities come from a file, from a management client, or with --create-on-use from their\n" +
			"first use. The file is a namespace of the config.json of Microsoft's emulator, or all of\n" +
			"it. GET /healthz answers 200 once the namespace can be used, GET /metrics counts.\n" +
			"SIGTERM closes the connections and stops.\n\n" + strings.TrimSpace(keyHelp),
		Example: "  messagehub emulator servicebus --in-memory --create-on-use\n" +
			"  messagehub emulator servicebus --data ./bus --entities config.json\n" +
			"  messagehub emulator servicebus --listen 127.0.0.1:5671 --tls --cert emulator.crt --log-frames",
		Args: cobra.NoArgs,
	}
	e.addFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		return p.emulateServiceBus(ctx, &e)
	})
	return cmd
}

func (e *busEmulator) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&e.listen, "listen", []string{"127.0.0.1:5672"}, "serve on `HOST:PORT`; may be given more than once")
	f.StringVar(&e.data, "data", "./servicebus-data", "keep the namespace in folder `DIR`")
	f.BoolVar(&e.inMemory, "in-memory", false, "keep the namespace in memory, until it stops")
	f.StringVar(&e.entities, "entities", "", "make the queues, topics and subscriptions of `FILE`")
	f.BoolVar(&e.createOnUse, "create-on-use", false, "make a queue, or a subscription, when a client first uses it")
	f.BoolVar(&e.tls, "tls", false, "let clients use TLS, with a self-signed certificate that is kept in the folder")
	f.StringVar(&e.cert, "cert", "", "write the certificate to `FILE`, for clients to trust")
	e.access.addFlags(f, "`SECRET` of the key "+embedded.WellKnownKeyName+"; default: that of Microsoft's emulator")
	f.StringSliceVar(&e.keys, "add-key", nil, "one more key, as `NAME=SECRET:RIGHTS`, with rights such as send+listen; NAME=@FILE:RIGHTS reads the secret from a file")
	f.BoolVar(&e.anonymous, "anonymous", false, "let everybody do everything, without any token")
	f.BoolVar(&e.trustTokens, "trust-tokens", false, "take every token of Microsoft Entra ID for a good one, unread")
	e.limits.addFlags(f)
	f.BoolVar(&e.logFrames, "log-frames", false, "print each AMQP frame on stderr")
}

func (p *process) emulateServiceBus(ctx context.Context, e *busEmulator) (err error) {
	if e.cert != "" && !e.tls {
		return p.usage("--cert needs --tls")
	}
	key, err := e.access.readKey(p)
	if err != nil {
		return err
	}
	key = cmp.Or(key, embedded.WellKnownKey)
	for _, address := range e.listen {
		if err := e.access.checkAddress(address, e.openTo(key)); err != nil {
			return p.usage("%w", err)
		}
	}
	o, err := e.options(p, key)
	if err != nil {
		return err
	}
	door, err := e.door()
	if err != nil {
		return err
	}
	namespace, err := embedded.Open(o) //nolint:contextcheck // opening is not to be given up half-way
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, namespace.Close()) }()
	listeners, err := e.listenAll(ctx)
	if err != nil {
		return err
	}
	handler := busHandler(namespace)
	door.AnyHost = true // each listener has its own check
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, len(listeners))
	for _, listener := range listeners {
		door.HTTP = e.access.checkHosts(listener.Addr(), handler)
		go func(door embedded.Door) { served <- namespace.Serve(ctx, listener, door) }(door)
	}
	shown := namespace.ConnectionString(listeners[0].Addr().String())
	if key != embedded.WellKnownKey {
		shown = strings.ReplaceAll(shown, key, "...")
	}
	fmt.Fprintf(p.out, "Service Bus emulator %s listens on %s with connection string %s\n", version, addresses(listeners), shown)
	fmt.Fprintln(p.err, "ready")
	for range listeners {
		err = errors.Join(err, <-served)
		cancel() // one that ends ends all
	}
	return err
}

// openTo is the reason why anyone who reaches the namespace can use it; "" if none.
func (e *busEmulator) openTo(key string) string {
	switch {
	case e.anonymous:
		return "--anonymous gives every client all rights"
	case e.trustTokens:
		return "--trust-tokens gives every client all rights"
	case key == embedded.WellKnownKey:
		return knownKey
	}
	return ""
}

func (e *busEmulator) options(p *process, secret string) (embedded.Options, error) {
	o := embedded.Options{
		Dir: e.data, CreateOnUse: e.createOnUse, Anonymous: e.anonymous, TrustTokens: e.trustTokens,
		Keys:   []embedded.Key{{Name: embedded.WellKnownKeyName, Secret: secret, Rights: embedded.All}},
		Logger: slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{ReplaceAttr: redactLogError})),
	}
	if e.inMemory {
		o.Dir = ""
	}
	if err := e.limits.apply(&o); err != nil {
		return o, p.usage("%w", err)
	}
	for _, text := range e.keys {
		key, err := parseKey(text)
		if err != nil {
			name, _, _ := strings.Cut(text, "=") // the rest is secret
			return o, p.usage("--add-key %s: %w", name, err)
		}
		o.Keys = append(o.Keys, key)
	}
	if e.entities != "" {
		file, err := os.Open(e.entities)
		if err != nil {
			return o, err
		}
		defer func() { _ = file.Close() }() // only read
		if o.Entities, err = embedded.ReadEntities(file); err != nil {
			return o, fmt.Errorf("%s: %w", e.entities, err)
		}
	}
	if e.logFrames {
		var printing sync.Mutex
		o.Frames = func(line string) {
			printing.Lock()
			defer printing.Unlock()
			fmt.Fprintln(p.err, line)
		}
	}
	return o, nil
}

// parseKey reads NAME=SECRET:RIGHTS. A secret in base64 may contain an equals
// sign, but no colon. @FILE in its place names the file that holds it.
func parseKey(text string) (embedded.Key, error) {
	name, rest, ok := strings.Cut(text, "=")
	i := strings.LastIndex(rest, ":")
	if !ok || name == "" || i < 1 {
		return embedded.Key{}, errors.New("want NAME=SECRET:RIGHTS")
	}
	key := embedded.Key{Name: name, Secret: rest[:i]}
	if file, ok := strings.CutPrefix(key.Secret, "@"); ok {
		text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
		if err != nil {
			return embedded.Key{}, err
		}
		key.Secret = strings.TrimSpace(string(text))
	}
	for right := range strings.SplitSeq(rest[i+1:], "+") {
		switch right {
		case "send":
			key.Rights |= embedded.Send
		case "listen":
			key.Rights |= embedded.Listen
		case "manage":
			key.Rights |= embedded.All
		default:
			return key, fmt.Errorf("right %q: want send, listen or manage", right)
		}
	}
	return key, nil
}

func (e *busEmulator) door() (embedded.Door, error) {
	if !e.tls {
		return embedded.Door{}, nil
	}
	folder := e.data
	if e.inMemory {
		folder = ""
	}
	cert, err := selfSigned(folder, e.cert, e.listen...)
	if err != nil {
		return embedded.Door{}, err
	}
	return embedded.Door{TLS: cert.Config()}, nil
}

// listenAll listens on all addresses, or on none.
func (e *busEmulator) listenAll(ctx context.Context) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range e.listen {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err == nil {
			listeners = append(listeners, listener)
			continue
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("listen on %s: another process has this port; stop that one, or choose another port with --listen", address)
		}
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
		return nil, err
	}
	return listeners, nil
}

func addresses(listeners []net.Listener) string {
	all := make([]string, len(listeners))
	for i, l := range listeners {
		all[i] = l.Addr().String()
	}
	return strings.Join(all, ", ")
}

// busHandler adds to the namespace what is not Service Bus: health, and counts.
func busHandler(namespace *embedded.Namespace) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(busMetrics(namespace), promhttp.HandlerOpts{}))
	mux.Handle("/", namespace.Handler())
	return mux
}
