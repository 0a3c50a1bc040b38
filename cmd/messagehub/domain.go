package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/servicebus/contract"
	"github.com/messagehub/messagehub/api/servicebus/domainclient"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

// A domainCommand contains the flags of messagehub domain.
type domainCommand struct {
	name       string
	servicebus string
	blob       string
	exchange   string

	send        int
	actors      string
	rate        float64
	batch       int
	weight      int64
	contentType string

	contentSize string
	format      string
	delay       time.Duration
	fail        float64
	failEvery   int
	failReason  string
	notices     bool
	quiet       bool
}

func (p *process) domainCommand() *cobra.Command {
	var d domainCommand
	cmd := &cobra.Command{
		Use:   "domain",
		Short: "Simulate a domain: send events, answer the hub, receive notices",
		Long: "Simulate a domain over Service Bus until Ctrl-C. It sends events, makes the content of bundles when the\n" +
			"hub asks for it, and receives notices of the bundles that actors have confirmed. At the end, it prints\n" +
			"the totals. The hub asks domains whose content is set to request:\n\n" +
			"  MESSAGEHUB_DOMAINS='[{name: Charges, content: request}]' messagehub serve\n\n" +
			"Content is a valid document of --content-size, which is generated during the upload. The size weight means\n" +
			"the sum of the weights of the events in the bundle, if each has --weight.\n\n" +
			"To write a real domain, see go doc ./api/servicebus/domainclient, and\n" +
			"api/servicebus/README.md for other languages.",
		Example: "  messagehub domain --send 1000 --actors 5790001330552,5790001330569\n" +
			"  messagehub domain --name TimeSeries --send 100000 --actors 200 --rate 500 --content-size 50MB\n" +
			"  messagehub domain --fail-every 3 --fail-reason DatasetNotAvailable --delay 2s --notices",
		Args: cobra.NoArgs,
	}
	d.addFlags(cmd.Flags())
	p.addCertificates(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("fail", "fail-every")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		s, err := d.newSimulation(p)
		if err != nil {
			return p.usage("%w", err)
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		return s.run(ctx)
	})
	return cmd
}

func (d *domainCommand) addFlags(f *pflag.FlagSet) {
	f.StringVar(&d.name, "name", "Charges", "`ORIGIN` of the simulated domain")
	f.StringVar(&d.servicebus, "servicebus", "", "`CONNECTION` string of the bus, or a namespace such as example.servicebus.windows.net; default: "+busVariable+", or the bus of the hub on this machine")
	f.StringVar(&d.blob, "blob", "", "`URL` or connection string of the storage account that is shared with the hub; default: "+blobConnectionVariable+", "+blobEndpointVariable+", or "+defaultBlob)
	f.StringVar(&d.exchange, "exchange", contract.ExchangeContainer, "the `CONTAINER` in the storage account")
	f.IntVar(&d.send, "send", 0, "send `N` events")
	f.StringVar(&d.actors, "actors", "5790001330552", "`LIST` of actors, separated by commas, or the number of actors to generate")
	f.Float64Var(&d.rate, "rate", 0, "send `N` events per second; 0: as fast as the bus accepts them")
	f.IntVar(&d.batch, "batch", 1, "`N` events of an actor per message, in JSON; 1: one event, in the format of the original hub")
	f.Int64Var(&d.weight, "weight", 1, "weight of each event in `KB`")
	f.StringVar(&d.contentType, "content-type", "", "`TYPE` of the events; default: one that fits the origin")
	f.StringVar(&d.contentSize, "content-size", "weight", "`SIZE` of the content of a bundle, such as 50MB, or weight")
	f.StringVar(&d.format, "format", "", "`FORMAT` of all content, json or xml; default: the format that the hub requests")
	f.DurationVar(&d.delay, "delay", 0, "wait for this `TIME` before answering a request for content")
	f.Float64Var(&d.fail, "fail", 0, "fail this `PART` of the requests, from 0 to 1, at random")
	f.IntVar(&d.failEvery, "fail-every", 0, "fail every `N`th request; 0: none")
	f.StringVar(&d.failReason, "fail-reason", domainclient.InternalError.String(), "`REASON` of these failures: DatasetNotFound, DatasetNotAvailable or InternalError")
	f.BoolVar(&d.notices, "notices", false, "print each notice")
	f.BoolVar(&d.quiet, "quiet", false, "do not print each answer")
}

// newSimulation validates the flags, and returns the simulation that they
// specify.
func (d *domainCommand) newSimulation(p *process) (*domainSimulation, error) {
	if _, err := domain.ParseOrigin(d.name); err != nil {
		return nil, fmt.Errorf("--name: %w", err)
	}
	s := &domainSimulation{p: p, domainCommand: d}
	var err error
	if s.recipients, err = parseActors(d.actors); err != nil {
		return nil, fmt.Errorf("--actors: %w", err)
	}
	if s.reason, err = parseReason(d.failReason); err != nil {
		return nil, fmt.Errorf("--fail-reason: %w", err)
	}
	if d.contentSize != "weight" {
		size, err := config.ParseSize(d.contentSize)
		if err != nil {
			return nil, fmt.Errorf("--content-size: %w, or weight", err)
		}
		s.size = int64(size)
	}
	switch domainclient.Format(d.format) {
	case "", domainclient.FormatJSON, domainclient.FormatXML:
	default:
		return nil, fmt.Errorf("--format: want json or xml, got %q", d.format)
	}
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{d.send < 0, "--send: want at least 0"},
		{!(d.rate >= 0), "--rate: want at least 0"},
		{d.batch < 1, "--batch: want at least 1"},
		{d.weight < 1, "--weight: want at least 1 (KB)"},
		{d.delay < 0, "--delay: want a time such as 2s"},
		{!(d.fail >= 0 && d.fail <= 1), "--fail: want a part from 0 to 1, such as 0.1"},
		{d.failEvery < 0, "--fail-every: want at least 0"},
	} {
		if wrong.is {
			return nil, errors.New(wrong.what)
		}
	}
	if _, err = p.access.tlsConfig(); err != nil {
		return nil, err
	}
	if s.place, err = p.bus(d.servicebus); err != nil {
		return nil, fmt.Errorf("--servicebus: %w", err)
	}
	if s.container, err = p.exchange(d.blob, d.exchange); err != nil {
		return nil, fmt.Errorf("--blob: %w", err)
	}
	return s, nil
}

// parseActors parses a list of actors' names. A number stands for that many
// generated names. The generated names are always the same, so that these
// actors can be simulated as well.
func parseActors(text string) ([]string, error) {
	const most = 1_000_000
	if n, err := strconv.Atoi(text); err == nil && len(text) < len("1234567") {
		if n < 1 || n > most {
			return nil, fmt.Errorf("want 1 to %d actors, got %d", most, n)
		}
		actors := make([]string, n)
		for i := range actors {
			actors[i] = energymarket.NewGLN(fmt.Sprintf("579%09d", i))
		}
		return actors, nil
	}
	actors := strings.Split(text, ",")
	for i, a := range actors {
		actors[i] = strings.TrimSpace(a)
		if _, err := domain.ParseActorID(actors[i]); err != nil {
			return nil, err
		}
	}
	return actors, nil
}

func parseReason(text string) (domainclient.Reason, error) {
	for _, r := range []domainclient.Reason{domainclient.DatasetNotFound, domainclient.DatasetNotAvailable, domainclient.InternalError} {
		if strings.EqualFold(text, r.String()) {
			return r, nil
		}
	}
	return 0, fmt.Errorf("want DatasetNotFound, DatasetNotAvailable or InternalError, got %q", text)
}
