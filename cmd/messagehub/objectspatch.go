package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

const (
	maxPatchFile  = 64 << 10 // maximum size of a patch, in bytes; the same as in the hub
	shownFailures = 10
)

func (p *process) objectsPatch() *cobra.Command {
	o := &objectsCommand{p: p}
	var file string
	var all bool
	var where []string
	var params url.Values
	cmd := &cobra.Command{
		Use: "patch BUCKET [KEY] --file FILE", Short: "Change the attributes of many objects",
		Long: "Let the hub change the user data of all objects that match, with a JSON Patch of the attributes with the\n" +
			"operations test, add and copy, or of the ingest id, and wait for the end. An object to which the patch\n" +
			"cannot be applied is not changed. The patch continues in the hub if this command ends earlier. It needs\n" +
			"the operator's token. BUCKET, KEY and --where are those of messagehub objects ls.",
		Example: "  echo '[{\"op\": \"add\", \"path\": \"/lane\", \"value\": 3}]' | messagehub objects patch results 'run7/*' --file -",
		Args:    cobra.RangeArgs(1, 2),
	}
	o.command(cmd, func(args []string) (err error) {
		if params, err = objectParams(args, where); err != nil {
			return err
		}
		if all {
			params.Set("currentState", "false")
		}
		if file == "" {
			return errors.New("want --file with the patch, or --file - for standard input")
		}
		return nil
	}, func(ctx context.Context) error {
		patch, err := o.readPatch(file)
		if err != nil {
			return err
		}
		job, err := o.hub.StartPatch(ctx, params, patch)
		if err != nil {
			return explainPatchRefusal(err)
		}
		if job, err = o.awaitJob(ctx, "patch", hubclient.PatchesPath, job); err != nil {
			return err
		}
		return o.showPatch(job)
	})
	cmd.Flags().StringVar(&file, "file", "", "`FILE` with the patch; - is standard input")
	cmd.Flags().StringArrayVar(&where, "where", nil, "only rows with this `FIELD=VALUE`; if repeated, all have to match")
	cmd.Flags().BoolVar(&all, "all", false, "change all rows that match, not only the current ones")
	return cmd
}

func (o *objectsCommand) readPatch(file string) ([]byte, error) {
	input, _, err := o.p.open(file)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	patch, err := io.ReadAll(io.LimitReader(input, maxPatchFile+1))
	if err == nil && len(patch) > maxPatchFile {
		err = fmt.Errorf("the patch has more than %d bytes", maxPatchFile)
	}
	return patch, err
}

// explainPatchRefusal returns the faults of a patch that the hub rejected, one
// per line.
func explainPatchRefusal(err error) error {
	refused, ok := errors.AsType[*hubclient.Problem](err)
	if !ok || len(refused.Errors) == 0 {
		return err
	}
	lines := []error{fmt.Errorf("the hub refused the patch (%d), and nothing was changed", refused.Status)}
	for _, f := range refused.Errors {
		lines = append(lines, fmt.Errorf("%s: %s", f.Pointer, f.Detail))
	}
	return errors.Join(lines...)
}

// showPatch prints the result of a patch. It fails if the patch was not
// completed.
func (o *objectsCommand) showPatch(job *hubclient.ObjectJob) error {
	return o.showJob("patch", job, func() {
		c := &job.Counts
		fmt.Fprintf(o.p.out, "%s matched: %d changed, %d unchanged, %d refused\n", terminal.CountOf(c.Seen, "row"), c.Changed, c.Unchanged, c.Refused)
		for _, f := range job.Failures[:min(len(job.Failures), shownFailures)] {
			fmt.Fprintf(o.p.out, "%s: %s\n", terminal.Printable(f.Object), terminal.Printable(f.Reason))
		}
	})
}
