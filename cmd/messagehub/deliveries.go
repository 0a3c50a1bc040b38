package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// A deliveriesCommand contains the flags and the client that all commands about
// deliveries share.
type deliveriesCommand struct {
	p       *process
	url     string
	actor   string
	timeout time.Duration
	json    bool

	hub *hubclient.Client
}

func (p *process) deliveriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deliveries",
		Short: "Show the deliveries of a subscription, and repeat them",
		Long: "Show the deliveries of a subscription: which events were delivered, failed, or wait, and why.\n" +
			"An actor sees its own subscriptions. Without --actor, an operator sees all, with the hub's token.",
		Example: "  messagehub deliveries list 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41 --actor 5790001330552 --state dead\n" +
			"  messagehub deliveries explain 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41.0.17 --actor 5790001330552",
		Args: checkName,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.deliveriesList(), p.deliveriesShow(), p.deliveriesExplain(), p.deliveriesReplay())
	return cmd
}

// command returns a command with one argument. parse validates the argument.
func (d *deliveriesCommand) command(name, argument, short, long, example string, parse func(string) error, body func(ctx context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: name + " " + argument, Short: short, Long: short + ".\n\n" + long,
		Example: "  messagehub deliveries " + name + " " + example + " --actor 5790001330552",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("want one %s", argument)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&d.url, "url", hubclient.DefaultURL, "`URL` of the hub")
	cmd.Flags().StringVar(&d.actor, "actor", "", "`ID` of the actor that owns the subscription; without it, you are an operator")
	cmd.Flags().DurationVar(&d.timeout, "timeout", time.Minute, "give up after this `TIME`")
	cmd.Flags().BoolVar(&d.json, "json", false, "print the hub's answer unchanged")
	dataFlag(cmd.Flags())
	d.p.addAccess(cmd.Flags())
	cmd.RunE = d.p.do(func(ctx context.Context, args []string) (err error) {
		if err := parse(args[0]); err != nil {
			return d.p.usage("%w", err)
		}
		if d.hub, err = d.client(config.Inputs{Flags: cmd.Flags()}); err != nil {
			return err
		}
		defer d.hub.Close()
		ctx, cancel := context.WithTimeout(ctx, d.timeout)
		defer cancel()
		return body(ctx)
	})
	return cmd
}

// client returns a client for the actor named by --actor or, without that flag,
// for an operator.
func (d *deliveriesCommand) client(in config.Inputs) (*hubclient.Client, error) {
	if d.actor != "" {
		hub, err := (&actorCommand{url: d.url, actor: d.actor}).checkActor(d.p)
		if err != nil {
			return nil, d.p.usage("%w", err)
		}
		return hub, nil
	}
	if _, err := hubclient.New(d.url); err != nil {
		return nil, d.p.usage("%w", err)
	}
	hub, err := d.p.newOperator(in, d.url)
	if err == nil && hub.Token == "" {
		return nil, d.p.usage("--actor is missing; say who you are, or as an operator set %s", tokenVariable)
	}
	return hub, err
}

func (p *process) deliveriesList() *cobra.Command {
	d := &deliveriesCommand{p: p}
	var id domain.SubscriptionID
	var state string
	limit := 0
	cmd := d.command("list", "UUID", "List the deliveries of a subscription",
		"The list has the failed deliveries, the dead letters, those under way, the last delivered ones, and the first\n"+
			"waiting ones, in the order of their events.", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41",
		func(text string) (err error) {
			if limit < 1 {
				return fmt.Errorf("--limit: want at least 1, got %d", limit)
			}
			id, err = domain.ParseSubscriptionID(text)
			return err
		},
		func(ctx context.Context) error {
			texts, hasMore, err := d.hub.Deliveries(ctx, d.actor, id, state, limit)
			if err != nil {
				return err
			}
			if d.json {
				return json.NewEncoder(p.out).Encode(map[string]any{"deliveries": append([]json.RawMessage{}, texts...)})
			}
			if err := p.showDeliveries(id, texts); err != nil {
				return err
			}
			if hasMore {
				fmt.Fprintln(p.err, "messagehub: the list is longer; --limit shows more of it, --state one state only")
			}
			return nil
		})
	cmd.Flags().StringVar(&state, "state", "", "only deliveries in this `STATE`: waiting, calling, retrying, delivered or dead")
	cmd.Flags().IntVar(&limit, "limit", 100, "show at most `NUMBER` rows")
	return cmd
}

func (p *process) deliveriesShow() *cobra.Command {
	d := &deliveriesCommand{p: p}
	var id domain.DeliveryID
	return d.command("show", "ID", "Show a delivery with its attempts", "messagehub deliveries list prints the ids.", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41.0.17",
		func(text string) (err error) { id, err = domain.ParseDeliveryID(text); return err },
		func(ctx context.Context) error {
			found, text, err := d.hub.Delivery(ctx, d.actor, id)
			if err != nil {
				return err
			}
			if d.json {
				return p.showJSON(text)
			}
			return p.showDelivery(found)
		})
}

func (p *process) deliveriesExplain() *cobra.Command {
	d := &deliveriesCommand{p: p}
	var id domain.DeliveryID
	return d.command("explain", "ID", "Explain the state of a delivery, and what can be done", "messagehub deliveries list prints the ids.", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41.0.17",
		func(text string) (err error) { id, err = domain.ParseDeliveryID(text); return err },
		func(ctx context.Context) error {
			found, text, err := d.hub.Explain(ctx, d.actor, id)
			if err != nil {
				return err
			}
			if d.json {
				return p.showJSON(text)
			}
			return d.showExplanation(found)
		})
}

// showJSON prints a JSON response on one line.
func (p *process) showJSON(text []byte) error {
	_, err := fmt.Fprintln(p.out, strings.TrimSpace(string(text)))
	return err
}
