package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

// A watchesCommand contains the flags and the client that all commands about
// watches share.
type watchesCommand struct {
	p *process
	a actorCommand

	hub  *hubclient.Client
	json bool
}

func (p *process) watchesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watches",
		Short: "Show and change what an actor watches",
		Long:  "Show and change the watches of an actor: the URLs that the hub calls when a resource is updated or deleted.",
		Example: "  messagehub watches add --actor 5790001330552 --resource http://127.0.0.1:8080/v1/resources/prices --callback https://example.org/changed\n" +
			"  messagehub watches list --actor 5790001330552",
		Args: checkName,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.watchesList(), p.watchesAdd(), p.watchesShow(), p.watchesRemove())
	return cmd
}

// command returns a command. If wantsID is true, the command has one argument,
// the id of a watch, and passes it to body.
func (w *watchesCommand) command(name, short, long string, wantsID bool, body func(ctx context.Context, id domain.WatchID) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " --actor ID", Short: short, Long: short + ".",
		Args: func(_ *cobra.Command, args []string) error {
			if want := map[bool]int{true: 1, false: 0}[wantsID]; len(args) != want {
				return fmt.Errorf("want %s", map[bool]string{true: "the id of one watch", false: "no argument"}[wantsID])
			}
			return nil
		},
	}
	if wantsID {
		cmd.Use = name + " UUID --actor ID"
		cmd.Example = "  messagehub watches " + name + " --actor 5790001330552 019abcde-7a52-7d57-9d0c-3f1e6b8a2c41"
	}
	if long != "" {
		cmd.Long += "\n\n" + long
	}
	w.a.addFlags(w.p, cmd)
	cmd.RunE = w.p.do(func(ctx context.Context, args []string) (err error) {
		var id domain.WatchID
		if wantsID {
			if id, err = domain.ParseWatchID(args[0]); err != nil {
				return w.p.usage("%w", err)
			}
		}
		if w.hub, err = w.a.checkActor(w.p); err != nil {
			return w.p.usage("%w", err)
		}
		defer w.hub.Close()
		ctx, cancel := context.WithTimeout(ctx, w.a.timeout)
		defer cancel()
		return explainWatchRefusal(body(ctx, id))
	})
	return cmd
}

// explainWatchRefusal returns the faults of a watch that the hub rejected, one
// per line.
func explainWatchRefusal(err error) error {
	refused, ok := errors.AsType[*hubclient.Problem](err)
	if !ok || len(refused.Errors) == 0 {
		return err
	}
	lines := []error{fmt.Errorf("the hub refused the watch (%d), and stored nothing", refused.Status)}
	for _, f := range refused.Errors {
		lines = append(lines, fmt.Errorf("--%s: %s", strings.TrimPrefix(f.Pointer, "/"), f.Detail))
	}
	return errors.Join(lines...)
}

// maxListedWatches is the maximum number of watches in one response of the hub.
const maxListedWatches = 100

func (p *process) watchesList() *cobra.Command {
	w := &watchesCommand{p: p}
	var limit int
	cmd := w.command("list", "List the watches of an actor", "", false, func(ctx context.Context, _ domain.WatchID) error {
		var all []*hubclient.Watch
		hasMore := true
		for hasMore && len(all) < limit {
			some, err := w.hub.Watches(ctx, w.a.actor, len(all), min(limit+1-len(all), maxListedWatches))
			if err != nil {
				return err
			}
			all, hasMore = append(all, some...), len(some) > 0
		}
		hasMore = len(all) > limit
		all = all[:min(limit, len(all))]
		err := w.showAll(all)
		if err == nil && hasMore {
			fmt.Fprintln(p.err, "messagehub: the list is longer; --limit shows more of it")
		}
		return err
	})
	addLimit(cmd, &limit)
	cmd.Flags().BoolVar(&w.json, "json", false, "print JSON")
	cmd.Example = "  messagehub watches list --actor 5790001330552"
	return cmd
}

func (w *watchesCommand) showAll(all []*hubclient.Watch) error {
	if w.json {
		return w.p.showElements("watches", all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(w.p.out, "%s has no watches\n", w.a.actor)
		return err
	}
	table := tabwriter.NewWriter(w.p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WATCH\tRESOURCE\tCHANGES\tDELIVERED\tERRORED\tCALLS")
	for _, one := range all {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%s\n", one.ID, terminal.Clip(terminal.Printable(one.Resource), 100), one.Triggered, one.Delivered, one.Errored,
			terminal.Clip(terminal.Printable(one.Callback), 60))
	}
	return table.Flush()
}

func (p *process) watchesShow() *cobra.Command {
	w := &watchesCommand{p: p}
	cmd := w.command("show", "Show a watch", "It also prints the last calls, newest first, and when the next one is due.", true, func(ctx context.Context, id domain.WatchID) error {
		found, err := w.hub.Watch(ctx, w.a.actor, id)
		if err != nil {
			return err
		}
		calls, err := w.hub.WatchAttempts(ctx, w.a.actor, id)
		if err != nil {
			return err
		}
		if w.json {
			return json.NewEncoder(p.out).Encode(struct {
				*hubclient.Watch
				*hubclient.WatchAttempts
			}{found, calls})
		}
		table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(table, "watch\t%s\nresource\t%s\ncalls\t%s\ncreated\t%s\n", found.ID, terminal.Printable(found.Resource), terminal.Printable(found.Callback),
			found.CreatedAt().Format(time.RFC3339))
		fmt.Fprintf(table, "changes\t%d\ndelivered\t%d\nerrored\t%d\nwaiting\t%d\n", found.Triggered, found.Delivered, found.Errored,
			found.Triggered-found.Delivered-found.Errored)
		if calls.Next != nil {
			fmt.Fprintf(table, "next call\t%s\n", calls.Next.Format(time.RFC3339))
		}
		for _, c := range calls.Attempts {
			fmt.Fprintf(table, "call\t%s\n", terminal.Printable(c.String()))
		}
		return table.Flush()
	})
	cmd.Flags().BoolVar(&w.json, "json", false, "print JSON")
	return cmd
}

func (p *process) watchesAdd() *cobra.Command {
	w := &watchesCommand{p: p}
	var resource, callback string
	var mayBeAbsent bool
	cmd := w.command("add", "Watch a resource", "The hub calls the callback when the resource is updated or deleted. The callback has to answer 200.", false, func(ctx context.Context, _ domain.WatchID) error {
		id, err := w.hub.CreateWatch(ctx, w.a.actor, resource, callback, mayBeAbsent)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.out, id)
		return err
	})
	cmd.Flags().StringVar(&resource, "resource", "", "`URI` of the resource (required)")
	cmd.Flags().StringVar(&callback, "callback", "", "`URL` that the hub calls (required)")
	cmd.Flags().BoolVar(&mayBeAbsent, "absent", false, "the resource need not exist yet")
	cmd.Example = "  messagehub watches add --actor 5790001330552 --resource http://127.0.0.1:8080/v1/resources/prices --callback https://example.org/changed"
	return cmd
}

func (p *process) watchesRemove() *cobra.Command {
	w := &watchesCommand{p: p}
	return w.command("remove", "Delete a watch", "Notifications that were not delivered are cancelled.", true, func(ctx context.Context, id domain.WatchID) error {
		if err := w.hub.DeleteWatch(ctx, w.a.actor, id); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.out, "deleted %s\n", id)
		return err
	})
}
