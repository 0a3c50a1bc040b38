// Errorbranches reports which error branches the tests of a coverage profile reached. Most data loss comes from code
// that handles failures, and line coverage does not show whether that code was reached.
//
//	go run ./bench/simulate/prove -cover profiles -seeds 500
//	go run ./bench/simulate/errorbranches -min 90 profiles/*.out
//
// An error branch is a non-empty list of statements that is executed or skipped because of an error. A value counts as
// an error because of its type, not because of its name. An error branch is one of these:
//
//   - The body of an if whose condition mentions a value of a type that implements
//     error: err != nil, errors.Is(err, x), isRefused(err), statusOf(err) == 404, also
//     combined with other conditions by && and ||. The same holds for a condition on a
//     variable that the if itself sets from an error: if x, ok := errors.AsType[X](err); ok.
//   - For a condition that holds if there is no error, such as err == nil: the else branch.
//     If the if has no else, and its body ends with return, continue, break, goto or panic,
//     the rest of the block. For a condition of both kinds, such as
//     (err == nil && x || isRefused(err)), the body, as above.
//   - In a switch without a tag, the body of a case whose condition mentions an error; after
//     a case that holds if there is no error, every further case and the default.
//   - In a switch over an error or over a value derived from an error, every case except nil:
//     switch domain.KindOf(err), switch err := err.(type).
//
// A branch whose condition mentions no error is not an error branch, even if it creates an error. Examples are the
// branches for a key that is missing in a map, for a closed channel, and for a select case on ctx.Done().
//
// All error branches of a package count. A branch that cannot be reached may be listed in impossible.txt with the
// reason; the report prints it but does not count it. An entry in impossible.txt that names a branch which does not
// exist or was reached is an error.
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
		return errors.New("want the coverage profiles as arguments")
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
		r, err := reportPackage(p, reached, impossible)
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
