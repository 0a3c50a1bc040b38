package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain"
)

// A subscriptionsCommand contains the flags and the client that all commands
// about subscriptions share.
type subscriptionsCommand struct {
	p *process
	a actorCommand

	hub  *hubclient.Client
	json bool
}

func (p *process) subscriptionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subscriptions",
		Short: "Show and change the subscriptions of an actor",
		Long: "Show and change the subscriptions of an actor: the URLs that the hub calls with events.\n" +
			"Messages for a paused subscription are kept.",
		Example: "  messagehub subscriptions create --actor 5790001330552 --callback-url https://example.org/hook\n" +
			"  messagehub subscriptions list --actor 5790001330552\n" +
			"  messagehub subscriptions sync subscriptions.yaml --dry-run",
		Args: checkName,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		p.subscriptionsList(), p.subscriptionsShow(), p.subscriptionsCreate(), p.subscriptionsDelete(),
		p.subscriptionsPause(true), p.subscriptionsPause(false), p.subscriptionsRotate(), p.subscriptionsTest(), p.subscriptionsSync(), p.subscriptionsExport(), p.subscriptionsReplay(),
	)
	return cmd
}

// command returns a command. If use ends with ID, the command has one argument,
// the id of a subscription, and passes it to body.
func (s *subscriptionsCommand) command(use, short, long string, body func(ctx context.Context, id domain.SubscriptionID) error) *cobra.Command {
	name, wantsID := strings.CutSuffix(use, " ID")
	cmd := &cobra.Command{
		Use: use + " --actor ID", Short: short, Long: short + ".",
		Example: "  messagehub subscriptions " + name + " --actor 5790001330552",
		Args: func(_ *cobra.Command, args []string) error {
			if want := map[bool]int{true: 1, false: 0}[wantsID]; len(args) != want {
				return fmt.Errorf("want %s", map[bool]string{true: "the id of one subscription", false: "no argument"}[wantsID])
			}
			return nil
		},
	}
	if wantsID {
		cmd.Use = name + " UUID --actor ID"
		cmd.Example += " 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"
	}
	if long != "" {
		cmd.Long += "\n\n" + long
	}
	s.a.addFlags(s.p, cmd)
	cmd.RunE = s.p.do(func(ctx context.Context, args []string) (err error) {
		var id domain.SubscriptionID
		if wantsID {
			if id, err = domain.ParseSubscriptionID(args[0]); err != nil {
				return s.p.usage("%w", err)
			}
		}
		if s.hub, err = s.a.checkActor(s.p); err != nil {
			return s.p.usage("%w", err)
		}
		defer s.hub.Close()
		ctx, cancel := context.WithTimeout(ctx, s.a.timeout)
		defer cancel()
		return explainRefusal(body(ctx, id))
	})
	return cmd
}

func (s *subscriptionsCommand) jsonFlag(f *pflag.FlagSet) {
	f.BoolVar(&s.json, "json", false, "print the hub's answer unchanged")
}

// explainRefusal returns the faults of a subscription that the hub rejected,
// one per line. The problem's own text only counts the faults.
func explainRefusal(err error) error {
	refused, ok := errors.AsType[*hubclient.Problem](err)
	if !ok || len(refused.Errors) == 0 {
		return err
	}
	lines := []error{fmt.Errorf("the hub refused the subscription (%d), and stored nothing", refused.Status)}
	for _, f := range refused.Errors {
		lines = append(lines, fmt.Errorf("%s: %s", strings.TrimPrefix(f.Pointer, "/"), f.Detail))
	}
	return errors.Join(lines...)
}

func (p *process) subscriptionsList() *cobra.Command {
	s := &subscriptionsCommand{p: p}
	cmd := s.command("list", "List the subscriptions of an actor", "", func(ctx context.Context, _ domain.SubscriptionID) error {
		all, err := s.hub.Subscriptions(ctx, s.a.actor)
		if err != nil {
			return err
		}
		if s.json {
			texts := make([]json.RawMessage, len(all))
			for i, one := range all {
				texts[i] = one.Text
			}
			return json.NewEncoder(p.out).Encode(map[string]any{"subscriptions": texts})
		}
		return p.showSubscriptions(s.a.actor, all)
	})
	s.jsonFlag(cmd.Flags())
	return cmd
}

func (p *process) subscriptionsShow() *cobra.Command {
	s := &subscriptionsCommand{p: p}
	cmd := s.command("show ID", "Show a subscription", "The hub never returns its secret.", func(ctx context.Context, id domain.SubscriptionID) error {
		found, err := s.hub.Subscription(ctx, s.a.actor, id)
		if err != nil {
			return err
		}
		if s.json {
			_, err = fmt.Fprintln(p.out, strings.TrimSpace(string(found.Text)))
			return err
		}
		return p.showSubscription(found)
	})
	s.jsonFlag(cmd.Flags())
	return cmd
}

func (p *process) subscriptionsDelete() *cobra.Command {
	s := &subscriptionsCommand{p: p}
	return s.command("delete ID", "Delete a subscription", "Its undelivered messages are discarded. Its id cannot be used again.", func(ctx context.Context, id domain.SubscriptionID) error {
		if err := s.hub.DeleteSubscription(ctx, s.a.actor, id); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.out, "deleted %s\n", id)
		return err
	})
}

func (p *process) subscriptionsPause(isPaused bool) *cobra.Command {
	s := &subscriptionsCommand{p: p}
	use, short, long, done := "resume ID", "Resume a subscription", "The messages that were kept are delivered.", "resumed"
	if isPaused {
		use, short, long, done = "pause ID", "Pause a subscription", "Messages are kept until it is resumed.", "paused"
	}
	return s.command(use, short, long, func(ctx context.Context, id domain.SubscriptionID) error {
		if _, err := s.hub.SetPaused(ctx, s.a.actor, id, isPaused); err != nil {
			return err
		}
		_, err := fmt.Fprintf(p.out, "%s %s\n", done, id)
		return err
	})
}

// newSubscriptionID returns a random subscription id.
func newSubscriptionID() (domain.SubscriptionID, error) {
	id, err := uuid.NewRandom()
	return domain.SubscriptionID(id), err
}
