package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/emulator"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// A busEmulator contains the flags of messagehub emulator servicebus.
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
			"A folder is one namespace. Accepted messages are on disk and survive kill -9.\n" +
			"Entities come from a file, from a management client, or with --create-on-use from their\n" +
			"first use. The file is a namespace from the config.json of Microsoft's emulator, or that whole\n" +
			"file. GET /healthz answers 200 once the namespace can be used; GET /metrics returns metrics.\n" +
			"SIGTERM closes the connections and stops.\n\n" + strings.TrimSpace(keyHelp),
		Example: "  messagehub emulator servicebus --in-memory --create-on-use\n" +
			"  messagehub emulator servicebus --data ./bus --entities config.json\n" +
			"  messagehub emulator servicebus --listen 127.0.0.1:5671 --tls --cert emulator.crt --log-frames",
		Args: cobra.NoArgs,
	}
	e.addFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if err := p.checkFolder(cmd.Flags(), e.inMemory); err != nil {
			return err
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		o, err := e.options(p) //nolint:contextcheck // it opens a namespace in memory, for a moment
		if err != nil {
			return err
		}
		return o.Run(ctx)
	})
	return cmd
}

func (e *busEmulator) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&e.listen, "listen", []string{"127.0.0.1:5672"}, "serve on `HOST:PORT`; may be given more than once")
	f.StringVar(&e.data, "data", "./servicebus-data", "store the namespace in folder `DIR`")
	f.BoolVar(&e.inMemory, "in-memory", false, "store the namespace in memory only")
	f.StringVar(&e.entities, "entities", "", "create the queues, topics and subscriptions in `FILE`")
	f.BoolVar(&e.createOnUse, "create-on-use", false, "create a queue or a subscription when a client first uses it")
	f.BoolVar(&e.tls, "tls", false, "let clients use TLS, with a self-signed certificate that is stored in the folder")
	f.StringVar(&e.cert, "cert", "", "write the certificate to `FILE`, for clients to trust")
	e.access.addFlags(f, "`SECRET` of the key "+embedded.WellKnownKeyName+"; default: the secret of Microsoft's emulator")
	f.StringSliceVar(&e.keys, "add-key", nil, "additional key, as `NAME=SECRET:RIGHTS`, with rights such as send+listen; NAME=@FILE:RIGHTS reads the secret from a file")
	f.BoolVar(&e.anonymous, "anonymous", false, "give every client all rights, without a token")
	f.BoolVar(&e.trustTokens, "trust-tokens", false, "accept every token of Microsoft Entra ID without verifying it")
	e.limits.addFlags(f)
	f.BoolVar(&e.logFrames, "log-frames", false, "print each AMQP frame on stderr")
}

// options converts the flags to options of the emulator.
func (e *busEmulator) options(p *process) (*emulator.ServiceBus, error) {
	if e.cert != "" && !e.tls {
		return nil, p.usage("--cert needs --tls")
	}
	key, err := e.access.readKey(p)
	if err != nil {
		return nil, err
	}
	o := &emulator.ServiceBus{
		Options: e.access.options(p), Listen: e.listen, Key: key,
		Engine:   embedded.Options{Dir: e.data, Version: version, CreateOnUse: e.createOnUse, Anonymous: e.anonymous, TrustTokens: e.trustTokens},
		Entities: e.entities, TLS: e.tls, CertFile: e.cert, LogFrames: e.logFrames,
	}
	if e.inMemory {
		o.Engine.Dir = ""
	}
	if err := e.limits.apply(&o.Engine); err != nil {
		return nil, p.usage("%w", err)
	}
	for _, text := range e.keys {
		key, err := parseKey(text)
		if err != nil {
			name, _, _ := strings.Cut(text, "=") // the error contains only the name, because the value is secret
			return nil, p.usage("--add-key %s: %w", name, err)
		}
		o.Engine.Keys = append(o.Engine.Keys, key)
	}
	if err := o.Validate(); err != nil {
		return nil, p.usage("%w", err)
	}
	return o, nil
}

// parseKey parses NAME=SECRET:RIGHTS. A base64 secret may contain an equals
// sign, but no colon. If SECRET is @FILE, the file contains the secret.
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
