package main

import (
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/emulator"
)

// keyHelp is the help text of each emulator about keys and addresses.
const keyHelp = "Without --key or --key-file it has the well-known key of emulators, and accepts only a loopback\n" +
	"address, unless --insecure is given. Other users of the machine can read --key in the list of\n" +
	"processes: use --key-file or " + emulator.KeyVariable + ". On a loopback address it accepts only\n" +
	"loopback host names, which prevents DNS rebinding; --host permits further names.\n\n"

// An emulatorAccess contains the flags for an emulator's key and addresses.
type emulatorAccess struct {
	key, keyFile string
	hosts        []string
	insecure     bool
}

func (a *emulatorAccess) addFlags(f *pflag.FlagSet, keyUsage string) {
	f.StringVar(&a.key, "key", "", keyUsage)
	f.StringVar(&a.keyFile, "key-file", "", "read the key from `FILE`; "+emulator.KeyVariable+" may have it too")
	f.StringSliceVar(&a.hosts, "host", nil, "accept requests for host `NAME` on a loopback address too; may be given more than once")
	f.BoolVar(&a.insecure, "insecure", false, "allow other machines to connect even without a secret key")
}

// readKey returns the key from the flag, the file or the environment, or "" if
// none exists.
func (a *emulatorAccess) readKey(p *process) (string, error) {
	switch {
	case a.key != "" && a.keyFile != "":
		return "", p.usage("--key and --key-file are given; use one of them")
	case a.key != "":
		return a.key, nil
	case a.keyFile == "":
		return p.variable(emulator.KeyVariable), nil
	}
	text, err := os.ReadFile(a.keyFile)
	if err != nil {
		return "", p.usage("--key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", p.usage("--key-file: %s is empty; write the key into it", a.keyFile)
	}
	return key, nil
}

// checkFolder fails if the flags name a data folder and also --in-memory, because nothing would be
// stored in the folder.
func (p *process) checkFolder(flags *pflag.FlagSet, inMemory bool) error {
	if inMemory && flags.Changed("data") {
		return p.usage("--data: --in-memory stores nothing in a folder; remove one of the two")
	}
	return nil
}

// options returns the options that are common to all emulators.
func (a *emulatorAccess) options(p *process) emulator.Options {
	return emulator.Options{
		Hosts: a.hosts, Insecure: a.insecure, Version: version, Out: p.out, Err: p.err,
		Logger: newLogger("auto", slog.LevelInfo, p.err),
	}
}
