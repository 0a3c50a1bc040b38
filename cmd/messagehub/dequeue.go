package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/domain"
)

func (p *process) dequeueCommand() *cobra.Command {
	var a actorCommand
	cmd := &cobra.Command{
		Use:   "dequeue --actor ID BUNDLE",
		Short: "Confirm a bundle, so that the next one can be fetched",
		Long: "Confirm that the actor has stored a bundle. Its events are never delivered again.\n" +
			"BUNDLE is the MessageId that peek has printed.",
		Example: "  messagehub dequeue --actor 5790001330552 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one BUNDLE, the MessageId that peek printed")
			}
			return nil
		},
	}
	a.addFlags(p, cmd)
	cmd.RunE = p.do(func(ctx context.Context, args []string) error {
		id, err := domain.ParseBundleID(args[0])
		if err != nil {
			return p.usage("%w", err)
		}
		hub, err := a.checkActor(p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		ctx, cancel := context.WithTimeout(ctx, a.timeout)
		defer cancel()
		if err := hub.As(a.actor).Dequeue(ctx, a.actor, id.String()); err != nil {
			return hub.ExplainError(err)
		}
		_, err = fmt.Fprintf(p.out, "dequeued %s\n", id)
		return err
	})
	return cmd
}
