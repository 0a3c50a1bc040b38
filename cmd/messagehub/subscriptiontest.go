package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

func (p *process) subscriptionsTest() *cobra.Command {
	s := &subscriptionsCommand{p: p}
	cmd := s.command("test ID", "Call the receiver of a subscription with a test event",
		"The hub calls the receiver once, signed and sent as every call, with an event of the type messagehub.test.\n"+
			"Nothing is stored or counted. The exit status is 1 if the receiver does not accept it.",
		func(ctx context.Context, id domain.SubscriptionID) error {
			r, text, err := s.hub.TestSubscription(ctx, s.a.actor, id)
			if err != nil {
				return err
			}
			took := time.Duration(r.Duration * float64(time.Millisecond)).Round(time.Millisecond)
			switch {
			case s.json:
				if err := p.showJSON(text); err != nil {
					return err
				}
			case r.Error != "":
				fmt.Fprintf(p.out, "failed after %s: %s\n", took, terminal.Printable(r.Error))
			default:
				fmt.Fprintf(p.out, "answered after %s with status %d\n", took, r.Status)
			}
			if r.Answer != "" && !s.json {
				fmt.Fprintf(p.out, "the answer begins: %s\n", terminal.Printable(r.Answer))
			}
			if !r.Success {
				return exitError(exitFailed)
			}
			return nil
		})
	s.jsonFlag(cmd.Flags())
	return cmd
}
