package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

const anID = "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"

// hubCommands contains each command that calls a hub, with valid arguments.
var hubCommands = map[string]string{
	"send": "-", "peek": "--actor a", "dequeue": "--actor a " + anID, "queues": "--actor a", "queue waiting": "--actor a", "check": "--url http://127.0.0.1:1", "backup": "- --url http://127.0.0.1:1",

	"queue list": "", "queue show": "a", "queue records": "a", "queue release": "a " + anID + " --why x", "queue skip": "a " + anID + " --why x",
	"queue replay": "a masterdata --why x", "queue abandon": "a Charges type --why x", "queue freeze": "a --why x", "queue thaw": "a --why x",

	"subscriptions create": "--actor a --callback-url https://example.org/", "subscriptions delete": anID + " --actor a",
	"subscriptions export": "--actor a", "subscriptions list": "--actor a", "subscriptions pause": anID + " --actor a",
	"subscriptions replay": anID + " --actor a", "subscriptions resume": anID + " --actor a", "subscriptions rotate": anID + " --actor a",
	"subscriptions show": anID + " --actor a", "subscriptions sync": "FILE --actor a", "subscriptions test": anID + " --actor a",

	"watches add":  "--actor a --resource http://127.0.0.1:1/v1/resources/x --callback https://example.org/",
	"watches list": "--actor a", "watches remove": anID + " --actor a", "watches show": anID + " --actor a",

	"deliveries list": anID, "deliveries show": anID + ".0.17", "deliveries explain": anID + ".0.17", "deliveries replay": anID + ".0.17 --actor a",

	"dead-letters list": "", "dead-letters records": "q", "dead-letters show": "q 1 --why x", "dead-letters resend": "q 1 --why x",
	"dead-letters delete": "q 1 --why x",

	"objects crawl": "b", "objects history": "o", "objects link": "o", "objects ls": "", "objects show": "o", "objects patch": "b k --file FILE",

	"broker broadcast": "a --text x --producer p --producer-token p --channel-token c",
	"broker dequeue":   "a b 1", "broker dlq": "a b", "broker list": "channels", "broker message": "a m0.1", "broker messages": "a",
	"broker peek": "a b", "broker put producer": "p", "broker put channel": "a", "broker put consumer": "a b --callback-url https://example.org/",
	"broker retrigger": "a m0.1", "broker sync": "FILE",

	"domain": "", "actor": "--actor a", "health": "", "find": anID, "log-level": "",
}

// tokenFileFlags lists the commands whose flag for an issuer's token is not
// --token-file; "" means that the command has no such flag. A producer of the
// broker has another kind of token, a bus has keys, and a probe sends no token.
var tokenFileFlags = map[string]string{
	"broker broadcast": "", "domain": "", "health": "",
	"broker put producer": "operator-token-file", "broker put channel": "operator-token-file", "broker put consumer": "operator-token-file",
}

// hubCommandsBelow returns the subcommands of cmd that call a hub or a bus, by
// path.
func hubCommandsBelow(cmd *cobra.Command, path string) map[string]*cobra.Command {
	all := make(map[string]*cobra.Command)
	if cmd.Flags().Lookup("url") != nil || cmd.Flags().Lookup("servicebus") != nil {
		all[path] = cmd
	}
	for _, below := range cmd.Commands() {
		maps.Copy(all, hubCommandsBelow(below, strings.TrimSpace(path+" "+below.Name())))
	}
	return all
}

func TestHubCommands_TakeATokenAndCertificates(t *testing.T) {
	p := &process{args: []string{"messagehub"}}
	found := hubCommandsBelow(p.root(), "")
	require.Equal(t, slices.Sorted(maps.Keys(hubCommands)), slices.Sorted(maps.Keys(found)), "the table has each command that talks to a hub")
	folder := t.TempDir()
	file, missing := filepath.Join(folder, "file.yaml"), filepath.Join(folder, "missing")
	require.NoError(t, os.WriteFile(file, []byte("actor: a\nsubscriptions: []\n"), 0o600))
	for path, arguments := range hubCommands {
		run := func(flag string) result {
			args := append(strings.Fields(path), strings.Fields(strings.ReplaceAll(arguments, "FILE", file))...)
			return messagehub(t, "{}", append(args, "--"+flag, missing)...)
		}
		for flag, want := range map[string]string{
			"ca": "--ca: open " + missing, "cert": "--cert and --key: a certificate needs its key", "key": "--cert and --key: a certificate needs its key",
		} {
			got := run(flag)
			require.NotZero(t, got.status, "%s --%s", path, flag)
			require.Contains(t, got.err, want, "%s --%s", path, flag)
		}
		flag, isOther := tokenFileFlags[path]
		switch {
		case !isOther:
			flag = "token-file"
		case flag == "":
			require.Nil(t, found[path].Flags().Lookup("token-file"), path)
			continue
		}
		got := run(flag)
		require.NotZero(t, got.status, "%s --%s", path, flag)
		require.Contains(t, got.err, "--"+flag+": ", path)
		require.Contains(t, got.err, missing+": no such file", path)
	}
}
