package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// emulatorKeyVariable holds the key of an emulator, which other users of the
// machine could read in an argument list.
const emulatorKeyVariable = "MESSAGEHUB_EMULATOR_KEY"

// keyHelp is what the help of an emulator says about keys and addresses.
const keyHelp = "Without a key of its own it has the well-known key of emulators, and accepts only a loopback\n" +
	"address unless --insecure is given. Other users of the machine can read --key in the list of\n" +
	"processes: use --key-file or " + emulatorKeyVariable + ". On a loopback address it accepts only\n" +
	"loopback host names, which prevents DNS rebinding; --host permits further ones.\n\n"

// emulatorAccess is who may use an emulator, as its flags say.
type emulatorAccess struct {
	key, keyFile string
	hosts        []string
	insecure     bool
}

func (a *emulatorAccess) addFlags(f *pflag.FlagSet, keyUsage string) {
	f.StringVar(&a.key, "key", "", keyUsage)
	f.StringVar(&a.keyFile, "key-file", "", "read the key from `FILE`; "+emulatorKeyVariable+" can hold it too")
	f.StringSliceVar(&a.hosts, "host", nil, "accept requests for host `NAME` on a loopback address too; may be given more than once")
	f.BoolVar(&a.insecure, "insecure", false, "serve other machines even without a secret key")
}

// readKey returns the key from the flag, the file or the environment; "" if there is
// none.
func (a *emulatorAccess) readKey(p *process) (string, error) {
	switch {
	case a.key != "" && a.keyFile != "":
		return "", p.usage("--key and --key-file are given; use one of them")
	case a.key != "":
		return a.key, nil
	case a.keyFile == "":
		return p.variable(emulatorKeyVariable), nil
	}
	text, err := os.ReadFile(a.keyFile)
	if err != nil {
		return "", fmt.Errorf("--key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", fmt.Errorf("--key-file: %s is empty; write the key into it", a.keyFile)
	}
	return key, nil
}

// checkAddress refuses an address that other machines reach while reason holds,
// which says why anyone could use the emulator. "" is no reason.
func (a *emulatorAccess) checkAddress(address, reason string) error {
	if reason == "" || a.insecure {
		return nil
	}
	err := config.RequireLoopback(address, reason, "give --insecure if every client that reaches it is trusted")
	if err != nil {
		return fmt.Errorf("--listen %s: %w", address, err)
	}
	return nil
}

// knownKey is the reason to refuse a public address with the well-known key.
const knownKey = "its key is the well-known one (set another with --key-file or " + emulatorKeyVariable + ")"

// checkHosts refuses requests for other hosts on a loopback address: a web page can
// make its own name resolve to such an address. It permits loopback names and those
// of --host.
func (a *emulatorAccess) checkHosts(addr net.Addr, next http.Handler) http.Handler {
	return loopback.CheckHost(addr, next, "this emulator accepts requests for localhost and loopback addresses only; start it with --host to permit another name", a.hosts...)
}
