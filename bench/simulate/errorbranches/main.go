// Errorbranches tells which error branches a coverage profile has reached: what a
// program does when something has gone wrong is where most losses of data come from,
// and no figure about all lines shows it.
//
//	go run ./bench/simulate/prove -cover profiles -seeds 500
//	go run ./bench/simulate/errorbranches -min 90 profiles/*.out
//
// An error branch is a list of statements, at least one, that is run or not because
// of an error. Types tell what is an error, not names. It is one of these:
//
//   - the body of an if whose condition mentions a value of a type that implements
//     error: err != nil, errors.Is(err, x), isRefused(err), statusOf(err) == 404, also
//     with more around it by && and ||. The same of a condition that uses a variable
//     that the if itself sets from an error: if x, ok := errors.AsType[X](err); ok.
//   - for a condition that holds if there is no error, err == nil or with more: the
//     else; or, if there is none and the body ends by leaving (return, continue,
//     break, goto, panic), what follows in the same block. Where one has both kinds,
//     (err == nil && x || isRefused(err)), the body counts, as above.
//   - the body of a case with such a condition, in a switch without a tag; behind a
//     case that holds if there is no error, every further case and the default.
//   - every case but that of nil in a switch over an error, or over what was made of
//     one: switch domain.KindOf(err), switch err := err.(type).
//
// So what is decided by something else is no error branch, though it may make an
// error: a map without the key, a channel that is closed, a select that a context ends.
//
// All error branches of a package count. One that cannot be reached by construction
// may be listed, with the reason, in impossible.txt; it is then left out of the sum,
// counted and printed for all to see. An entry that names nothing, or a branch that
// was reached, is an error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if err := runTool(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "errorbranches:", err)
		os.Exit(1)
	}
}

func runTool(args []string, to io.Writer) error {
	set := flag.NewFlagSet("errorbranches", flag.ContinueOnError)
	atLeast := set.Float64("min", 0, "how much of each package has to be reached, in percent")
	packages := set.String("packages", "./cosmos,./cosmos/objects,./domain/hub,./domain/ledger,./api/servicebus,./api/servicebus/contentrequest,./api/servicebus/ingest,./api/servicebus/internal/busclient,./api/servicebus/internal/receiver", "which packages, as the go command names them")
	list := set.String("impossible", "bench/simulate/errorbranches/testdata/impossible.txt", "the branches that cannot be reached")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() == 0 {
		return errors.New("name the coverage profiles")
	}
	reached, err := readProfiles(set.Args())
	if err != nil {
		return err
	}
	impossible, err := readImpossible(*list)
	if err != nil {
		return err
	}
	parsed, err := loadPackages(strings.Split(*packages, ","))
	if err != nil {
		return err
	}
	var failed error
	for _, p := range parsed {
		r, err := judgePackage(p, reached, impossible)
		if err != nil {
			return err
		}
		r.printTo(to)
		if r.reachedPercent() < *atLeast {
			failed = errors.Join(failed, fmt.Errorf("%s: %.1f %% of the error branches were reached, want %g %%", p.path, r.reachedPercent(), *atLeast))
		}
	}
	return errors.Join(failed, impossible.staleError(parsed))
}
