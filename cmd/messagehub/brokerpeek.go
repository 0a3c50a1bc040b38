package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

func (p *process) brokerPeek() *cobra.Command {
	b := &brokerCommand{p: p}
	b.acceptConsumerToken()
	var consumer domain.PartyID
	size := 0
	cmd := b.command("peek CHANNEL CONSUMER", "Fetch messages that wait for a consumer",
		"These are messages that wait for their first attempt or for another one. They form a bundle, which stays the same\n"+
			"until it is dequeued. Meanwhile, the consumer is not called with them. --json also prints the payloads.\n\n"+
			"The exit status is 3 if no message waits.", "peek prices billing --size 10 --json",
		func(args []string) (err error) {
			if size < 1 || size > broker.MaxPeek {
				return fmt.Errorf("--size: want 1 to %d, got %d", broker.MaxPeek, size)
			}
			consumer, err = parseConsumer(args)
			return err
		},
		func(ctx context.Context) error {
			bundle, err := b.client.Peek(ctx, consumer.Channel().String(), consumer.String(), size)
			switch {
			case err != nil:
				return err
			case bundle == nil:
				fmt.Fprintf(p.err, "no message waits for %s of %s\n", consumer, consumer.Channel())
				return exitError(exitNoData)
			case b.json:
				return json.NewEncoder(p.out).Encode(bundle)
			}
			return p.showBundle(consumer, bundle)
		})
	cmd.Flags().IntVar(&size, "size", 25, "fetch up to `N` messages")
	b.jsonFlag(cmd.Flags())
	return cmd
}

func (p *process) brokerDequeue() *cobra.Command {
	b := &brokerCommand{p: p}
	b.acceptConsumerToken()
	var consumer domain.PartyID
	var bundle string
	return b.command("dequeue CHANNEL CONSUMER BUNDLE", "Confirm the messages of a bundle",
		"The hub does not call the consumer with these messages. BUNDLE is the id that peek printed. The command may be repeated.",
		"dequeue prices billing 7RUPYM4BQHJLXKZQ6OTYTQK4ZA",
		func(args []string) (err error) {
			bundle = args[2]
			if err := checkMessageID(bundle); err != nil {
				return fmt.Errorf("BUNDLE: want the id that peek printed, got %q", domain.Shorten(bundle))
			}
			consumer, err = parseConsumer(args)
			return err
		},
		func(ctx context.Context) error {
			if err := b.client.Dequeue(ctx, consumer.Channel().String(), consumer.String(), bundle); err != nil {
				return err
			}
			_, err := fmt.Fprintf(p.out, "dequeued %s\n", bundle)
			return err
		})
}
