package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	public "github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// actorWait is how long each Peek of a simulated actor waits for data.
const actorWait = 20 * time.Second

func (p *process) simulateActorCommand() *cobra.Command {
	var a actorCommand
	var group string
	cmd := &cobra.Command{
		Use:   "actor --actor ID",
		Short: "Simulate an actor: fetch bundles and confirm them",
		Long: "Simulate an actor until Ctrl-C: peek, read the bundle, dequeue, and print a line for each bundle. At the end,\n" +
			"print the totals. While the hub cannot be reached, or asks for a pause, the command retries. It confirms bundles\n" +
			"and drops their contents, so use it only for trials, together with messagehub domain.",
		Example: "  messagehub actor --actor 5790001330552",
		Args:    cobra.NoArgs,
	}
	a.addFlags(p, cmd)
	cmd.Flags().StringVar(&group, "group", "", "only bundles of the group of domains with this `NAME`, such as timeseries")
	cmd.Flags().Lookup("timeout").Usage = "repeat a request that has no response within this `TIME`"
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if _, err := peekOptions(group, "", "", 0); err != nil {
			return p.usage("%w", err)
		}
		if a.timeout <= 0 {
			return p.usage("--timeout: want a time such as 1m, got %v", a.timeout)
		}
		hub, err := a.checkActor(p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		return p.consumeBundles(ctx, hub, a.actor, group, a.timeout)
	})
	return cmd
}

// consumeBundles peeks and dequeues as an actor until ctx ends.
func (p *process) consumeBundles(ctx context.Context, hub *hubclient.Client, actor, group string, timeout time.Duration) error {
	fmt.Fprintf(p.out, "actor %s at %s; Ctrl-C ends it\n", actor, hub.Base)
	var bundles, size int64
	consumer := &public.Consumer{
		Client: hub.As(actor).With(func(o *public.Options) {
			o.Timeout = timeout
			o.OnRetry = func(err error, pause time.Duration) bool {
				fmt.Fprintf(p.err, "messagehub: %v; retry in %s\n", hub.ExplainError(err), pause.Round(time.Millisecond))
				return true
			}
		}),
		Actor: actor, Group: group, Wait: actorWait,
		Dequeued: func(b *public.Bundle) {
			bundles++
			size += b.Size
			fmt.Fprintf(p.out, "dequeued %s: %d bytes of %s\n", b.ID, b.Size, b.Type)
		},
	}
	err := consumer.Run(ctx, func(_ context.Context, b *public.Bundle) error {
		_, err := io.Copy(io.Discard, b)
		return err
	})
	if err != nil {
		return hub.ExplainError(err)
	}
	_, err = fmt.Fprintf(p.out, "%s, %s\n", terminal.CountOf(bundles, "bundle"), terminal.CountOf(size, "byte"))
	return err
}
