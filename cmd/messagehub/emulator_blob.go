package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// A blobEmulator is what the flags of messagehub emulator blob say.
type blobEmulator struct {
	listen     string
	data       string
	inMemory   bool
	access     emulatorAccess
	containers []string
}

func (p *process) emulatorBlobCommand() *cobra.Command {
	var e blobEmulator
	cmd := &cobra.Command{
		Use:   "blob",
		Short: "Run a Blob Storage account",
		Long: "Run a Blob Storage account that any client can use, by URLs as Azurite has them:\n" +
			"http://127.0.0.1:10000/" + embedded.WellKnownAccount + "/CONTAINER/BLOB.\n\n" +
			"A folder is one account. What was answered is on disk and survives kill -9.\n" +
			"It has containers and block blobs, and no more; requests are signed with the account's\n" +
			"key, which is the one of Azurite by default. Clients make containers.\n" +
			"GET /healthz answers 200 once the account can be used. SIGTERM closes the connections\n" +
			"and stops.\n\n" + strings.TrimSpace(keyHelp),
		Example: "  messagehub emulator blob --in-memory\n" +
			"  messagehub emulator blob --data ./blobs --container messagehub-exchange",
		Args: cobra.NoArgs,
	}
	e.addFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		return p.emulateBlob(ctx, &e)
	})
	return cmd
}

func (e *blobEmulator) addFlags(f *pflag.FlagSet) {
	f.StringVar(&e.listen, "listen", "127.0.0.1:10000", "serve on `HOST:PORT`")
	f.StringVar(&e.data, "data", "./blob-data", "keep the account in folder `DIR`")
	f.BoolVar(&e.inMemory, "in-memory", false, "keep the account in memory, until it stops")
	e.access.addFlags(f, "account `KEY` in base64; default: that of Azurite")
	f.StringSliceVar(&e.containers, "container", nil, "make container `NAME`; may be given more than once")
}

func (p *process) emulateBlob(ctx context.Context, e *blobEmulator) (err error) {
	key, err := e.access.readKey(p)
	if err != nil {
		return err
	}
	isKnown := cmp.Or(key, embedded.WellKnownKey) == embedded.WellKnownKey
	if isKnown {
		if err := e.access.checkAddress(e.listen, knownKey); err != nil {
			return p.usage("%w", err)
		}
	}
	o := embedded.Options{
		Dir: e.data, Key: key, Containers: e.containers,
		Logger: slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{ReplaceAttr: redactLogError})),
	}
	if e.inMemory {
		o.Dir = ""
	}
	account, err := embedded.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", e.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: another process has this port; stop that one, or choose another port with --listen", e.listen)
	}
	if err != nil {
		return err
	}
	shown := account.ConnectionString(listener.Addr().String())
	if !isKnown {
		shown = strings.ReplaceAll(shown, key, "...")
	}
	fmt.Fprintf(p.out, "Blob Storage emulator %s listens on %s with connection string %s\n", version, listener.Addr(), shown)
	fmt.Fprintln(p.err, "ready")
	return account.Serve(ctx, listener, embedded.Door{HTTP: e.access.checkHosts(listener.Addr(), blobHandler(account)), AnyHost: true})
}

// blobHandler adds to the account what is not Blob Storage: health.
func blobHandler(account *embedded.Account) http.Handler {
	blobs := account.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" && r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			fmt.Fprintln(w, "ok")
			return
		}
		blobs.ServeHTTP(w, r)
	})
}
