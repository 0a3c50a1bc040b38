package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/emulator"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// A blobEmulator contains the flags of messagehub emulator blob.
type blobEmulator struct {
	listen      string
	data        string
	inMemory    bool
	tls         bool
	cert        string
	access      emulatorAccess
	trustTokens bool
	containers  []string
	maxMemory   string
}

func (p *process) emulatorBlobCommand() *cobra.Command {
	var e blobEmulator
	cmd := &cobra.Command{
		Use:   "blob",
		Short: "Run a Blob Storage account",
		Long: "Run a Blob Storage account that any client can use, with the URLs of Azurite:\n" +
			"http://127.0.0.1:10000/" + embedded.WellKnownAccount + "/CONTAINER/BLOB.\n\n" +
			"A folder is one account. Acknowledged writes are on disk and survive kill -9.\n" +
			"It supports containers and block blobs only. Requests are signed with the account's\n" +
			"key, by default the key of Azurite, or they have a shared access signature, or a token\n" +
			"with --trust-tokens. Clients create containers.\n" +
			"GET /healthz answers 200 once the account can be used. SIGTERM closes the connections\n" +
			"and stops.\n\n" + strings.TrimSpace(keyHelp),
		Example: "  messagehub emulator blob --in-memory\n" +
			"  messagehub emulator blob --data ./blobs --container messagehub-exchange\n" +
			"  messagehub emulator blob --tls --cert emulator.crt --trust-tokens",
		Args: cobra.NoArgs,
	}
	e.addFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if err := p.checkFolder(cmd.Flags(), e.inMemory); err != nil {
			return err
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		o, err := e.options(p)
		if err != nil {
			return err
		}
		return o.Run(ctx)
	})
	return cmd
}

func (e *blobEmulator) addFlags(f *pflag.FlagSet) {
	f.StringVar(&e.listen, "listen", "127.0.0.1:10000", "serve on `HOST:PORT`")
	f.StringVar(&e.data, "data", "./blob-data", "store the account in folder `DIR`")
	f.BoolVar(&e.inMemory, "in-memory", false, "store the account in memory only")
	f.BoolVar(&e.tls, "tls", false, "serve HTTPS, with a self-signed certificate that is stored in the folder")
	f.StringVar(&e.cert, "cert", "", "write the certificate to `FILE`, for clients to trust")
	e.access.addFlags(f, "account `KEY` in base64; default: the key of Azurite")
	f.BoolVar(&e.trustTokens, "trust-tokens", false, "accept every token of Microsoft Entra ID without verifying it")
	f.StringSliceVar(&e.containers, "container", nil, "create container `NAME`; may be given more than once")
	f.StringVar(&e.maxMemory, "max-memory", "4GB", "maximum `SIZE` of all contents of an account in memory; writes above it fail with 507")
}

// options converts the flags to options of the emulator.
func (e *blobEmulator) options(p *process) (*emulator.Blob, error) {
	if e.cert != "" && !e.tls {
		return nil, p.usage("--cert needs --tls")
	}
	key, err := e.access.readKey(p)
	if err != nil {
		return nil, err
	}
	maxMemory, err := config.ParseSize(e.maxMemory)
	if err != nil {
		return nil, p.usage("--max-memory %q: %w", e.maxMemory, err)
	}
	o := &emulator.Blob{
		Options: e.access.options(p), Listen: e.listen,
		Engine: embedded.Options{Dir: e.data, Key: key, Containers: e.containers, TrustTokens: e.trustTokens, MaxMemory: int64(maxMemory)},
		TLS:    e.tls, CertFile: e.cert,
	}
	if e.inMemory {
		o.Engine.Dir = ""
	}
	if err := o.Validate(); err != nil {
		return nil, p.usage("%w", err)
	}
	return o, nil
}
