package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

func (p *process) brokerPut() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put",
		Short: "Create or change a producer, a channel or a consumer",
		Long: "Create or change a producer, a channel or a consumer. The commands may be repeated: without a difference, nothing is\n" +
			"changed. A new party needs a token, which the hub never shows. The commands delete nothing.",
		Example: "  messagehub broker put channel prices --token-file prices.token\n" +
			"  messagehub broker put producer shop --token-file shop.token\n" +
			"  messagehub broker put consumer prices billing --callback-url https://example.org/hook --token-file billing.token",
		Args: checkName,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		p.brokerPutParty("producer PRODUCER", "producer", "A producer sends messages to channels whose tokens it has.",
			func(args []string) (domain.PartyID, error) { return domain.Producers.Parse(args[0]) }),
		p.brokerPutParty("channel CHANNEL", "channel", "Each message that is sent to a channel is delivered to all of its consumers.", parseChannel),
		p.brokerPutParty("consumer CHANNEL CONSUMER", "consumer",
			"The hub calls the URL with each message that is sent to the channel from then on. Calls carry the token, and are\n"+
				"signed with it. A hub on the same machine calls receivers there only with push.allow=127.0.0.0/8 and\npush.insecure-http=true.", parseConsumer),
	)
	return cmd
}

func (p *process) brokerPutParty(use, kind, long string, parse func(args []string) (domain.PartyID, error)) *cobra.Command {
	b := &brokerCommand{p: p, hasNewToken: true}
	token := tokenFlag{name: "token", whose: kind}
	var draft brokerclient.Draft
	var id domain.PartyID
	example := map[string]string{
		"producer": "put producer shop --token-file shop.token", "channel": "put channel prices --token-file prices.token",
		"consumer": "put consumer prices billing --callback-url https://example.org/hook --token-file billing.token",
	}[kind]
	cmd := b.command(use, "Create or change a "+kind, long, example,
		func(args []string) (err error) {
			if id, err = parse(args); err != nil {
				return err
			}
			if id.IsConsumer() {
				if draft.CallbackURL == "" {
					return fmt.Errorf("--callback-url is missing; say what the hub is to call")
				}
				if err := domain.CheckCallbackURL(draft.CallbackURL); err != nil {
					return fmt.Errorf("--callback-url: %w", err)
				}
			}
			draft.Token, err = token.readToken()
			return err
		},
		func(ctx context.Context) error {
			_, created, err := b.client.Put(ctx, refOf(id), &draft)
			if err != nil {
				return err
			}
			if created {
				_, err = fmt.Fprintf(p.out, "created %s\n", id.Describe())
				return err
			}
			_, err = fmt.Fprintf(p.out, "%s existed, and is up to date now\n", id.Describe())
			return err
		})
	cmd.Flags().StringVar(&draft.Name, "name", "", "display `NAME`; default: unchanged, or the id of a new party")
	if kind == "consumer" {
		cmd.Flags().StringVar(&draft.CallbackURL, "callback-url", "", "`URL` that the hub calls (required)")
	}
	token.addFlags(cmd.Flags(), "default: unchanged")
	return cmd
}

// refOf converts a party's id to a reference of the broker's client.
func refOf(id domain.PartyID) brokerclient.Ref {
	switch {
	case id.IsConsumer():
		return brokerclient.Consumer(id.Channel().String(), id.String())
	case id.List() == domain.Channels:
		return brokerclient.Channel(id.String())
	default:
		return brokerclient.Producer(id.String())
	}
}

func (p *process) brokerList() *cobra.Command {
	b := &brokerCommand{p: p}
	b.acceptChannelToken()
	var list brokerclient.PartyList
	var what string
	limit := 0
	cmd := b.command("list LIST [CHANNEL]", "List producers, channels, or the consumers of a channel",
		"LIST is producers, channels or consumers. For consumers, the token of their channel is enough.", "list consumers prices",
		func(args []string) error {
			if limit < 1 {
				return fmt.Errorf("--limit: want at least 1, got %d", limit)
			}
			what = args[0]
			switch lists := map[string]brokerclient.PartyList{"producers": brokerclient.Producers, "channels": brokerclient.Channels}; {
			case what == "consumers" && len(args) == 2:
				channel, err := domain.Channels.Parse(args[1])
				list = brokerclient.Consumers(channel.String())
				return err
			case what == "consumers":
				return fmt.Errorf("want the CHANNEL of the consumers")
			case len(args) == 2:
				return fmt.Errorf("only the list consumers takes a CHANNEL")
			default:
				var ok bool
				if list, ok = lists[what]; !ok {
					return fmt.Errorf("want producers, channels or consumers, got %q", domain.Shorten(what))
				}
				return nil
			}
		},
		func(ctx context.Context) error {
			return showList(b, b.client.List(ctx, list), limit, what, func(all []*brokerclient.Party) error { return p.showParties(what, all) })
		})
	addLimit(cmd, &limit)
	b.jsonFlag(cmd.Flags())
	return cmd
}

func (p *process) showParties(what string, all []*brokerclient.Party) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(p.out, "there are no %s\n", what)
		return err
	}
	table := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	heading := strings.ToUpper(strings.TrimSuffix(what, "s")) + "\tNAME\tCHANGED"
	if what == "consumers" {
		heading += "\tCALLS"
	}
	fmt.Fprintln(table, heading)
	for _, one := range all {
		row := fmt.Sprintf("%s\t%s\t%s", terminal.Printable(one.ID), shorten(one.Name, 40), one.Changed.UTC().Format(time.RFC3339))
		if what == "consumers" {
			row += "\t" + shorten(one.CallbackURL, 80)
		}
		fmt.Fprintln(table, row)
	}
	return table.Flush()
}
