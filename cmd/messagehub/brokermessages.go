package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

func (p *process) brokerMessages() *cobra.Command {
	b := &brokerCommand{p: p}
	b.acceptChannelToken()
	var channel domain.PartyID
	var since string
	var changedSince time.Time
	limit := 0
	cmd := b.command("messages CHANNEL", "List the messages of a channel",
		"Messages are ordered by priority, lowest first, then by age, oldest first. A message is Acknowledged until each of its\n"+
			"consumers has accepted it, and then Out-for-delivery.", "messages prices --since 1h",
		func(args []string) (err error) {
			if limit < 1 {
				return fmt.Errorf("--limit: want at least 1, got %d", limit)
			}
			if since != "" {
				if changedSince, err = parseTime("since", since, time.Now()); err != nil {
					return err
				}
			}
			channel, err = parseChannel(args)
			return err
		},
		func(ctx context.Context) error {
			return showList(b, b.client.Messages(ctx, channel.String(), changedSince), limit, "messages", func(all []*brokerclient.StoredMessage) error {
				return p.showMessages(channel.String(), all)
			})
		})
	cmd.Flags().StringVar(&since, "since", "", "only messages whose status has changed since this `TIME`, as 2030-01-31T12:00:00Z, or a duration before now, such as 24h")
	addLimit(cmd, &limit)
	b.jsonFlag(cmd.Flags())
	return cmd
}

func (p *process) brokerMessage() *cobra.Command {
	b := &brokerCommand{p: p}
	b.acceptChannelToken()
	var channel domain.PartyID
	var id string
	var printsPayload bool
	cmd := b.command("message CHANNEL MESSAGE", "Show a message with its jobs",
		"MESSAGE is the id from the hub or the producer. A job is the delivery to a consumer.", "message prices m0.17",
		func(args []string) (err error) {
			id = args[1]
			if err := checkMessageID(id); err != nil {
				return err
			}
			if printsPayload && b.json {
				return errors.New("--payload and --json: want one of them")
			}
			channel, err = parseChannel(args)
			return err
		},
		func(ctx context.Context) error {
			m, err := b.client.Message(ctx, channel.String(), id)
			switch {
			case err != nil:
				return err
			case b.json:
				return json.NewEncoder(p.out).Encode(m)
			case printsPayload:
				_, err = p.out.Write(m.Payload)
				return err
			}
			return p.showMessage(channel.String(), m)
		})
	cmd.Flags().BoolVar(&printsPayload, "payload", false, "print only the payload, unchanged")
	b.jsonFlag(cmd.Flags())
	return cmd
}

// checkMessageID returns an error if a text cannot be the id of a message.
func checkMessageID(id string) error {
	if id == "" || id == "." || id == ".." {
		return fmt.Errorf("MESSAGE: want the id of a message, got %q", id)
	}
	return domain.CheckText("MESSAGE", id, domain.MaxMessageID)
}

func (p *process) brokerDeadLetters() *cobra.Command {
	b := &brokerCommand{p: p}
	b.acceptConsumerToken()
	var consumer domain.PartyID
	limit := 0
	cmd := b.command("dlq CHANNEL CONSUMER", "List the dead letters of a consumer",
		"A job is dead when all of its attempts have failed. messagehub broker retrigger restarts it.", "dlq prices billing",
		func(args []string) (err error) {
			if limit < 1 {
				return fmt.Errorf("--limit: want at least 1, got %d", limit)
			}
			consumer, err = parseConsumer(args)
			return err
		},
		func(ctx context.Context) error {
			return showList(b, b.client.DeadLetters(ctx, consumer.Channel().String(), consumer.String()), limit, "deadLetters", func(all []*brokerclient.Job) error { return p.showDeadLetters(consumer, all) })
		})
	addLimit(cmd, &limit)
	b.jsonFlag(cmd.Flags())
	return cmd
}

func (p *process) brokerRetrigger() *cobra.Command {
	b := &brokerCommand{p: p}
	b.acceptConsumerToken()
	var channel domain.PartyID
	var message, consumer string
	return b.command("retrigger CHANNEL MESSAGE [CONSUMER]", "Restart dead jobs of a message",
		"A restarted job has all of its attempts again; its history remains. Without CONSUMER, all dead jobs of the message\n"+
			"are restarted, which needs the token of the operators.", "retrigger prices m0.17 billing",
		func(args []string) (err error) {
			if channel, err = parseChannel(args); err != nil {
				return err
			}
			message = args[1]
			if err := checkMessageID(message); err != nil {
				return err
			}
			if len(args) == 3 {
				consumer = args[2]
				_, err = channel.Consumers().Parse(consumer)
				return err
			}
			token, err := b.own.readToken()
			if err == nil && token != "" && !isOfIssuer(token) {
				err = errors.New("--token: name the CONSUMER whose token it is")
			}
			return err
		},
		func(ctx context.Context) (err error) {
			whose := "all dead jobs of "
			if consumer == "" {
				err = b.client.Retrigger(ctx, channel.String(), message)
			} else {
				err, whose = b.client.RetriggerJob(ctx, channel.String(), message, consumer), "the job of "+consumer+" for "
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.out, "re-triggered %s%s\n", whose, terminal.Printable(message))
			return err
		})
}
