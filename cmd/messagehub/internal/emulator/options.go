package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"syscall"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/certificate"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// Options are common to all emulators.
type Options struct {
	// Hosts lists further host names for which an emulator accepts requests on
	// a loopback address.
	Hosts []string

	// Insecure permits an address that other machines can reach, even if the
	// emulator requires no secret key.
	Insecure bool

	Version string       // version of the program, for the line printed at the start
	Out     io.Writer    // receives the line printed at the start, with the address and the key
	Err     io.Writer    // receives the logs of requests and frames
	Logger  *slog.Logger // log of the engine; receives the record "ready" when the emulator serves
}

// KeyVariable is the environment variable that contains the emulator's key.
// Unlike a flag, other users of the machine cannot read it.
const KeyVariable = "MESSAGEHUB_EMULATOR_KEY"

// knownKey is the reason passed to checkAddress if the key is the well-known one.
const knownKey = "its key is the well-known one (set another with --key-file or " + KeyVariable + ")"

// trustsTokens is the reason passed to checkAddress if the emulator accepts every token.
const trustsTokens = "--trust-tokens gives every client all rights" //nolint:gosec // a sentence

// ownKey is printed instead of a key that is not the well-known one.
const ownKey = "YOUR_KEY"

// checkAddress rejects an address that other machines can reach. reason says
// why anyone could use the emulator at that address; if reason is "", all
// addresses are accepted.
func (o *Options) checkAddress(address, reason string) error {
	if reason == "" || o.Insecure {
		return nil
	}
	err := config.RequireLoopback(address, reason, "give --insecure if every client that reaches it is trusted")
	if err != nil {
		return fmt.Errorf("--listen %s: %w", address, err)
	}
	return nil
}

// checkHosts prevents DNS rebinding: on a loopback address, it rejects requests
// whose Host is neither a loopback name nor in Hosts.
func (o *Options) checkHosts(addr net.Addr, next http.Handler) http.Handler {
	return loopback.CheckHost(addr, next, "this emulator accepts requests for localhost and loopback addresses only; start it with --host to permit another name", o.Hosts...)
}

// openListener opens the TCP address of --listen.
func openListener(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, config.ListenError(address, "--listen", err)
	}
	return listener, nil
}

// openError adds advice to the error of an engine that could not open folder;
// "" stands for an engine in memory.
func openError(folder string, err error) error {
	if folder == "" {
		return err
	}
	if errors.Is(err, disk.ErrLocked) || errors.Is(err, datafolder.ErrLocked) {
		return fmt.Errorf("data folder %s: another process uses it; stop that one, or choose another folder with --data", folder)
	}
	if errors.Is(err, disk.ErrNotFolder) {
		err = &fs.PathError{Op: "open", Path: folder, Err: syscall.ENOTDIR}
	}
	if pathError, isPath := errors.AsType[*fs.PathError](err); isPath {
		return config.FolderError(folder, pathError)
	}
	return err
}

// selfSigned returns a certificate for this machine and the hosts of addresses.
// It stores the certificate and its key in folder, and a copy of the
// certificate in file, unless these are "".
func selfSigned(folder, file string, addresses ...string) (cert *certificate.Certificate, err error) {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	for _, address := range addresses {
		if host, _, err := net.SplitHostPort(address); err == nil && host != "" && !net.ParseIP(host).IsUnspecified() {
			hosts = append(hosts, host)
		}
	}
	if folder == "" {
		cert, err = certificate.New(hosts...)
	} else {
		cert, err = certificate.Load(folder, hosts...)
	}
	if err == nil && file != "" {
		if err = cert.Write(file); err != nil {
			err = fmt.Errorf("--cert: %w", err)
		}
	}
	return cert, err
}

// writeHealth answers a request for /healthz: an emulator that can answer is
// ready.
func writeHealth(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}
