// Command messagehub is the message hub and its tools: serve runs a hub; send acts as a
// domain, peek and dequeue act as an actor; check, queue, provision and notify are for
// operators; subscriptions, listen and certify are for receivers, which a hub calls;
// broker is for operators and consumers of the broker; demo simulates a day of a small
// energy market; bench measures.
//
// Each command is one file. [process] is the environment of a command, which tests
// replace. Commands contain no rules about events; package domain has the rules.
//
// The exit status is 0 when everything succeeded, 2 when a value of the command line or of a
// setting is wrong, 3 when a peek found no data, and 1 otherwise; see [usageError].
package main

import (
	"context"
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // root certificates for systems without any, such as a container image built from scratch

	"github.com/messagehub/messagehub/cmd/terminal"
)

// version, revision and date are set by the linker.
var (
	version  = "dev"
	revision string // commit; if "", the commit that the go command recorded
	date     string // date of the commit, in RFC 3339; if "", the date that the go command recorded
)

func main() {
	os.Exit(run(context.Background(), &process{
		args:    os.Args,
		environ: os.Environ(),
		in:      os.Stdin,
		out:     os.Stdout,
		err:     os.Stderr,

		isWatched: terminal.IsTerminal(os.Stdout),
	}))
}
