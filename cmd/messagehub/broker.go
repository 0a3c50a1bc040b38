package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

func (p *process) brokerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Show and change the channels of the webhook broker, and what is sent to them",
		Long: "Show and change the producers, channels and consumers of the webhook broker, and the messages of channels.\n" +
			"Most commands are for an operator, with the hub's token or one of an issuer. Commands with the flag --token also accept the\n" +
			"token of a channel or of a consumer.",
		Example: "  messagehub broker sync broker.yaml --dry-run\n" +
			"  messagehub broker broadcast prices --producer shop --producer-token-file shop.token --channel-token-file prices.token --text hello\n" +
			"  messagehub broker dlq prices billing",
		Args: checkName,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		p.brokerSync(), p.brokerPut(), p.brokerList(), p.brokerBroadcast(), p.brokerMessages(), p.brokerMessage(),
		p.brokerDeadLetters(), p.brokerRetrigger(), p.brokerPeek(), p.brokerDequeue(),
	)
	return cmd
}

// A brokerCommand contains the flags and clients that all commands about the
// broker share.
type brokerCommand struct {
	p       *process
	url     string
	timeout time.Duration
	json    bool

	// own is the flag for the token of a channel or consumer, which a request
	// sends instead of the operators' token. It is nil if the command has no
	// such flag. asOwner returns credentials with that token.
	own     *tokenFlag
	asOwner func(token string) brokerclient.Credentials

	// hasNewToken means that --token-file sets a party's new token, so
	// --operator-token-file sets the operators' token.
	hasNewToken bool

	// producer contains the credentials of a command that acts for a producer.
	// It is nil for all other commands.
	producer *brokerclient.Credentials

	hub    *hubclient.Client // creates the error message if the hub is unreachable
	client *brokerclient.Client
}

const operatorTokenFile = "--operator-token-file"

// command returns a command with the arguments named in use, where brackets
// mean an optional argument. parse validates the arguments before any request.
func (b *brokerCommand) command(use, short, long, example string, parse func(args []string) error, body func(ctx context.Context) error) *cobra.Command {
	name, _, _ := strings.Cut(use, " ")
	cmd := &cobra.Command{
		Use: use, Short: short, Long: short + ".", Example: "  messagehub broker " + example,
		Args: argumentsOf(use),
	}
	if long != "" {
		cmd.Long += "\n\n" + long
	}
	cmd.Flags().StringVar(&b.url, "url", hubclient.DefaultURL, "`URL` of the hub")
	cmd.Flags().DurationVar(&b.timeout, "timeout", time.Minute, "give up after this `TIME`")
	if b.producer == nil {
		dataFlag(cmd.Flags())
	}
	switch {
	case b.own != nil:
		b.own.addFlags(cmd.Flags(), "or an operator's token from the issuer")
		b.p.addCertificates(cmd.Flags())
	case b.producer != nil:
		b.p.addCertificates(cmd.Flags())
	case b.hasNewToken:
		b.p.addAccessBy(cmd.Flags(), strings.TrimPrefix(operatorTokenFile, "--"))
	default:
		b.p.addAccess(cmd.Flags())
	}
	cmd.RunE = b.p.do(func(ctx context.Context, args []string) error {
		if err := parse(args); err != nil {
			return b.p.usage("%w", err)
		}
		if err := b.connectClients(name, config.Inputs{Flags: cmd.Flags()}); err != nil {
			return err
		}
		defer b.hub.Close()
		defer b.client.Close()
		ctx, cancel := context.WithTimeout(ctx, b.timeout)
		defer cancel()
		return b.explainError(body(ctx))
	})
	return cmd
}

// argumentsOf returns a check that requires one argument for each upper-case
// word in use.
func argumentsOf(use string) cobra.PositionalArgs {
	var names []string
	optional := 0
	for _, word := range strings.Fields(use) {
		name := strings.Trim(word, "[]")
		if name != strings.ToUpper(name) || strings.HasPrefix(name, "--") {
			continue
		}
		if name != word {
			optional++
			name = "perhaps " + name
		}
		names = append(names, name)
	}
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(names) == 0 && len(args) > 0:
			return errors.New("want no argument")
		case len(args) < len(names)-optional || len(args) > len(names):
			return fmt.Errorf("want %s", strings.Join(names, " and "))
		}
		return nil
	}
}

// connectClients creates the clients of the command called name.
func (b *brokerCommand) connectClients(name string, in config.Inputs) (err error) {
	if b.hasNewToken {
		b.p.access.tokenFlag = operatorTokenFile
	}
	if b.hub, err = b.p.newHub(b.url); err != nil {
		return b.p.usage("%w", err)
	}
	creds, err := b.credentials(in)
	if err != nil {
		return err
	}
	if creds == (brokerclient.Credentials{}) {
		return b.p.usage("%s: no token is given; as an operator, set %s or %s, or name the data folder of the hub with --data", name, tokenVariable, ownTokenVariable)
	}
	if creds.AdminToken == "" {
		b.p.warnIfReadable(b.hub, "a token")
	}
	b.client, err = brokerclient.New(brokerclient.Options{URL: b.url, Credentials: creds, HTTP: b.hub.HTTP(), Budget: -1})
	return err
}

// credentials returns the credentials for requests: those of the producer, or
// else the token from the flags, or else the operators' token.
func (b *brokerCommand) credentials(in config.Inputs) (creds brokerclient.Credentials, err error) {
	if b.producer != nil {
		return *b.producer, nil
	}
	if b.own != nil {
		token, err := b.own.readToken()
		if err != nil {
			return creds, b.p.usage("%w", err)
		}
		switch {
		case isOfIssuer(token):
			return brokerclient.Credentials{AdminToken: token}, nil
		case token != "":
			return b.asOwner(token), nil
		}
	}
	operator, err := b.p.newOperator(in, b.url)
	if err != nil {
		return creds, err
	}
	defer operator.Close()
	return brokerclient.Credentials{AdminToken: operator.Token}, nil
}

// isOfIssuer reports whether an issuer signed a token. The first part of such a
// token is JSON; the tokens of channels and consumers are random texts.
func isOfIssuer(token string) bool {
	return identity.IsSigned(token) && strings.HasPrefix(token, "eyJ")
}

// explainError adds advice to an error of connecting to the hub.
func (b *brokerCommand) explainError(err error) error {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return b.hub.Unreachable(err)
	}
	return err
}

func (b *brokerCommand) jsonFlag(f *pflag.FlagSet) {
	f.BoolVar(&b.json, "json", false, "print JSON, in the format of the HTTP API")
}

// A tokenFlag is a pair of flags for a token: one contains the token, the other
// names a file.
type tokenFlag struct {
	name  string // name of the flag
	whose string
	text  string
	file  string

	isIssuersToo bool // isIssuersToo means that the flag also accepts an issuer's token
}

func (t *tokenFlag) addFlags(f *pflag.FlagSet, purpose string) {
	if purpose != "" {
		purpose = ", " + purpose
	}
	f.StringVar(&t.text, t.name, "", "`TOKEN` of the "+t.whose+purpose+"; other users of the machine can read it")
	f.StringVar(&t.file, t.name+"-file", "", "`FILE` whose first line is the token of the "+t.whose)
}

// readToken returns the token from the flag, or from the file that the flag
// names. It returns "" if no flag is set.
func (t *tokenFlag) readToken() (string, error) {
	token := t.text
	switch {
	case t.text != "" && t.file != "":
		return "", fmt.Errorf("--%s and --%s-file: want one of them", t.name, t.name)
	case t.file != "":
		lines, err := readSecretFile(t.file)
		if err != nil {
			return "", fmt.Errorf("--%s-file: %w", t.name, err)
		}
		token = lines[0]
	case t.text == "":
		return "", nil
	}
	if t.isIssuersToo && isOfIssuer(token) {
		return token, nil
	}
	if err := broker.CheckToken(token); err != nil {
		return "", fmt.Errorf("--%s: %s", t.name, strings.TrimPrefix(err.Error(), "token: "))
	}
	return token, nil
}

// acceptChannelToken adds flags for a channel's token to the command.
func (b *brokerCommand) acceptChannelToken() {
	b.own = &tokenFlag{name: "token", whose: "channel", isIssuersToo: true}
	b.asOwner = func(token string) brokerclient.Credentials { return brokerclient.Credentials{ChannelToken: token} }
}

// acceptConsumerToken adds flags for a consumer's token to the command.
func (b *brokerCommand) acceptConsumerToken() {
	b.own = &tokenFlag{name: "token", whose: "consumer", isIssuersToo: true}
	b.asOwner = func(token string) brokerclient.Credentials {
		return brokerclient.Credentials{ConsumerToken: token}
	}
}

// parseChannel returns the id of the channel named by the first argument.
func parseChannel(args []string) (domain.PartyID, error) { return domain.Channels.Parse(args[0]) }

// parseConsumer returns the id of a consumer. The first argument names its
// channel, the second the consumer.
func parseConsumer(args []string) (domain.PartyID, error) {
	channel, err := parseChannel(args)
	if err != nil {
		return domain.PartyID{}, err
	}
	return channel.Consumers().Parse(args[1])
}
