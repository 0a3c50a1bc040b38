package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/domain"
)

// A broadcastCommand contains the flags of messagehub broker broadcast.
type broadcastCommand struct {
	brokerCommand
	creds         brokerclient.Credentials
	producerToken tokenFlag
	channelToken  tokenFlag
	text          *string // text is the message, or nil if the message is in a file
	metadata      []string

	channel string
	file    string
	message brokerclient.Message
}

func (p *process) brokerBroadcast() *cobra.Command {
	b := &broadcastCommand{
		producerToken: tokenFlag{name: "producer-token", whose: "producer"},
		channelToken:  tokenFlag{name: "channel-token", whose: "channel"},
	}
	b.brokerCommand = brokerCommand{p: p, producer: &b.creds}
	text := ""
	var cmd *cobra.Command
	cmd = b.command("broadcast CHANNEL [FILE]", "Send a message to the consumers of a channel",
		"The message is the content of FILE, stdin for -, or --text. Once its id is printed, the hub has stored it.\n"+
			"With --id, the command may be repeated: the hub stores the same message once within 24 hours.",
		"broadcast prices price.json --producer shop --producer-token-file shop.token --channel-token-file prices.token --content-type application/json",
		func(args []string) error {
			if cmd.Flags().Changed("text") {
				b.text = &text
			}
			return b.parseArguments(args)
		},
		func(ctx context.Context) error {
			if err := b.readPayload(); err != nil {
				return err
			}
			id, err := b.client.Publish(ctx, b.channel, &b.message)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.out, "stored %s\n", id)
			return err
		})
	f := cmd.Flags()
	f.StringVar(&b.creds.ProducerID, "producer", "", "`ID` of the producer (required)")
	b.producerToken.addFlags(f, "required")
	b.channelToken.addFlags(f, "required")
	f.StringVar(&text, "text", "", "send this `TEXT`")
	f.StringVar(&b.message.ID, "id", "", "`ID` of the message, which you choose")
	f.IntVar(&b.message.Priority, "priority", 0, "`PRIORITY` of the message, 0 to 9; the highest is delivered first")
	f.StringVar(&b.message.ContentType, "content-type", "", "`TYPE` of the message; default: application/octet-stream")
	f.StringArrayVar(&b.metadata, "header", nil, "`NAME: VALUE` of a header that is delivered with the message; may be given more than once")
	return cmd
}

// parseArguments validates the command line with the same rules as the hub.
func (b *broadcastCommand) parseArguments(args []string) error {
	channel, err := parseChannel(args)
	if err != nil {
		return err
	}
	b.channel = channel.String()
	if len(args) == 2 {
		b.file = args[1]
	}
	if (b.text != nil) == (b.file != "") {
		return errors.New("want a FILE, - for stdin, or --text")
	}
	if b.creds.ProducerID == "" {
		return errors.New("--producer is missing; say who you are")
	}
	if _, err := domain.Producers.Parse(b.creds.ProducerID); err != nil {
		return fmt.Errorf("--producer: %w", err)
	}
	if b.creds.ProducerToken, err = b.producerToken.readToken(); err != nil {
		return err
	}
	if b.creds.ChannelToken, err = b.channelToken.readToken(); err != nil {
		return err
	}
	if b.creds.ProducerToken == "" || b.creds.ChannelToken == "" {
		return errors.New("want --producer-token-file and --channel-token-file, or the tokens as flags")
	}
	m := domain.Message{ID: b.message.ID, Priority: b.message.Priority, ContentType: b.message.ContentType}
	if err := m.Check(); err != nil {
		return err
	}
	b.message.Metadata, err = parseHeaders(b.metadata)
	return err
}

// parseHeaders parses the headers of a message.
func parseHeaders(texts []string) (map[string]string, error) {
	all := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, ok := strings.Cut(text, ":")
		switch _, twice := all[name]; {
		case !ok || name == "":
			return nil, fmt.Errorf("--header: want NAME: VALUE, got %q", domain.Shorten(text))
		case twice:
			return nil, fmt.Errorf("--header: %s occurs twice", domain.Shorten(name))
		}
		all[name] = strings.TrimSpace(value)
	}
	if err := webhook.CheckHeaders(all); err != nil {
		return nil, fmt.Errorf("--header: %s", strings.TrimPrefix(err.Error(), "/headers/"))
	}
	return all, nil
}

// readPayload sets the message's payload to the text or to the content of the
// file.
func (b *broadcastCommand) readPayload() (err error) {
	if b.text != nil {
		b.message.Payload = []byte(*b.text)
	} else {
		input, _, err := b.p.open(b.file)
		if err != nil {
			return err
		}
		defer input.Close()
		if b.message.Payload, err = io.ReadAll(io.LimitReader(input, domain.MaxPayload+1)); err != nil {
			return fmt.Errorf("read %s: %w", b.file, err)
		}
	}
	if len(b.message.Payload) > domain.MaxPayload {
		return fmt.Errorf("want a message of at most %d bytes", domain.MaxPayload)
	}
	return nil
}
