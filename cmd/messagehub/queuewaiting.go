package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api/hubclient"
)

// queuesCommand returns the command queue waiting under its former name queues,
// which existing scripts use.
func (p *process) queuesCommand() *cobra.Command {
	cmd := p.queueWaiting()
	cmd.Use, cmd.Hidden = "queues --actor ID", true
	return cmd
}

func (p *process) queueWaiting() *cobra.Command {
	var a actorCommand
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "waiting --actor ID",
		Short: "Show the events that wait for an actor, for each group",
		Long: "Show the events that wait for an actor, for each group: the events that are not dequeued, how long the oldest\n" +
			"of them has waited, and the open bundle. It opens no bundle, and needs no operator's token: an actor\n" +
			"may query its own queue.",
		Example: "  messagehub queue waiting --actor 5790001330552",
		Args:    cobra.NoArgs,
	}
	a.addFlags(p, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the hub's answer unchanged")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		hub, err := a.checkActor(p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		queues, err := hub.As(a.actor).Queues(ctx, a.actor)
		if err != nil {
			return hub.ExplainError(err)
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(map[string]any{"queues": queues})
		}
		return p.showQueues(queues)
	})
	return cmd
}

func (p *process) showQueues(queues []hubclient.Queue) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GROUP\tWAITING\tOLDEST\tOPEN BUNDLE\tEVENTS\tOPENED")
	for _, g := range queues {
		age, bundle := "-", "-\t-\t-"
		if g.Waiting > 0 && g.AgeSeconds == nil {
			age = "?"
		} else if g.Waiting > 0 {
			age = (time.Duration(*g.AgeSeconds) * time.Second).String()
		}
		if g.Open != nil {
			bundle = fmt.Sprintf("%s\t%d\t%s", g.Open.ID, g.Open.Events, g.Open.Opened.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", g.Group, g.Waiting, age, bundle)
	}
	return table.Flush()
}
