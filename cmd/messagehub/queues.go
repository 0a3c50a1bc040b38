package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// queues is what a hub answers at /v1/queues.
type queues struct {
	Queues []struct {
		Group      string `json:"group"`
		Waiting    int64  `json:"waiting"`
		AgeSeconds *int64 `json:"ageSeconds,omitempty"` // nil: not known
		Open       *struct {
			BundleID string    `json:"bundleId"`
			Events   int       `json:"events"`
			Opened   time.Time `json:"opened"`
		} `json:"open,omitempty"`
	} `json:"queues"`
}

func (p *process) queuesCommand() *cobra.Command {
	var a actorCommand
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "queues --actor ID",
		Short: "Show what waits for an actor, group by group",
		Long: "Show what waits for an actor, group by group: the events that are not dequeued, how long the oldest\n" +
			"of them has waited, and the open bundle. It opens nothing.",
		Example: "  messagehub queues --actor 5790001330552",
		Args:    cobra.NoArgs,
	}
	a.flags(p, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the hub's answer as it is")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		hub, err := a.check(p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		resp, err := hub.Do(ctx, http.MethodGet, "/v1/queues", a.actor, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var q queues
		if err := json.NewDecoder(resp.Body).Decode(&q); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		if asJSON {
			return json.NewEncoder(p.out).Encode(q)
		}
		return p.showQueues(&q)
	})
	return cmd
}

func (p *process) showQueues(q *queues) error {
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "GROUP\tWAITING\tOLDEST\tOPEN BUNDLE\tEVENTS\tOPENED")
	for _, g := range q.Queues {
		age, bundle := "-", "-\t-\t-"
		if g.Waiting > 0 && g.AgeSeconds == nil {
			age = "?"
		} else if g.Waiting > 0 {
			age = (time.Duration(*g.AgeSeconds) * time.Second).String()
		}
		if g.Open != nil {
			bundle = fmt.Sprintf("%s\t%d\t%s", g.Open.BundleID, g.Open.Events, g.Open.Opened.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", g.Group, g.Waiting, age, bundle)
	}
	return table.Flush()
}
