package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/api/broker/brokerclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

func (p *process) brokerSync() *cobra.Command {
	b := &brokerCommand{p: p}
	var name string
	var wanted []wantedParty
	isDryRun := false
	cmd := b.command("sync FILE", "Create and change producers, channels and consumers from a file",
		"The command may be repeated: without a difference, nothing is changed. What is not in the file is kept; nothing is\n"+
			"ever deleted. The whole file is checked before anything is changed. FILE is - for stdin, or may be the configuration\n"+
			"of the hub, which does the same at its start. Example:\n\n"+
			"  broker:\n"+
			"    producers:\n"+
			"      - id: shop\n"+
			"        name: The shop                # for people; optional\n"+
			"        token-file: shop.token        # or token-env: NAME; optional for an existing producer\n"+
			"    channels:\n"+
			"      - {id: prices, token-env: PRICES_TOKEN}\n"+
			"    consumers:\n"+
			"      - channel: prices\n"+
			"        id: billing\n"+
			"        callback-url: https://example.org/hook\n"+
			"        token-file: billing.token\n\n"+
			"Tokens need not be in the file. With a token in it (token: …), the file is a secret. Other files are\n"+
			"relative to the folder of FILE.",
		"sync broker.yaml --dry-run",
		func(args []string) error {
			name = args[0]
			return nil
		},
		func(ctx context.Context) (err error) {
			if wanted, err = p.readParties(name); err != nil {
				return err
			}
			s := &partySync{p: p, client: b.client, isDryRun: isDryRun, explain: b.explainError}
			return s.run(ctx, wanted)
		})
	cmd.Flags().BoolVar(&isDryRun, "dry-run", false, "print what would be done, and change nothing")
	return cmd
}

// A wantedParty is a party declared in a file, with its token.
type wantedParty struct {
	config.BrokerParty
	token string // "" if the token does not change
}

// readParties reads a file that declares parties, and the tokens of the
// parties.
func (p *process) readParties(name string) (wanted []wantedParty, err error) {
	input, _, err := p.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, input.Close()) }()
	b, err := config.ReadBroker(input, name, p.environ)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, party := range b.Parties() {
		token, hasToken, err := party.Token.Read()
		if err == nil && hasToken {
			err = broker.CheckToken(token.Reveal())
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", party.ID.Describe(), err))
		}
		wanted = append(wanted, wantedParty{party, token.Reveal()})
	}
	return wanted, errors.Join(faults...)
}

// A partySync changes a hub's parties to those that a file declares.
type partySync struct {
	p        *process
	client   *brokerclient.Client
	isDryRun bool
	explain  func(error) error
}

// A partyStep creates or changes a party.
type partyStep struct {
	wanted wantedParty
	stored *brokerclient.Party // the stored party; nil if the step creates the party
	why    []string            // descriptions of the members that change
}

func (s *partySync) run(ctx context.Context, wanted []wantedParty) error {
	stored, err := s.fetchParties(ctx, wanted)
	if err != nil {
		return err
	}
	steps, err := planParties(wanted, stored)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	changes := int64(0)
	for i := range steps {
		step := &steps[i]
		isChange, err := s.carryOut(ctx, step)
		if err != nil {
			return fmt.Errorf("%s: %w; before the failure: %s; the command may be repeated",
				step.wanted.ID.Describe(), s.explain(err), terminal.CountOf(changes, "change"))
		}
		if isChange {
			changes++
		}
		s.showStep(step, isChange)
	}
	s.showOthers(wanted, stored)
	if s.isDryRun {
		_, err = fmt.Fprintf(s.p.out, "%s would be made; this was a dry run, nothing was changed\n", terminal.CountOf(changes, "change"))
	} else {
		_, err = fmt.Fprintf(s.p.out, "%s made\n", terminal.CountOf(changes, "change"))
	}
	return err
}

// A storedParty is a party stored in the hub.
type storedParty struct {
	id    domain.PartyID
	party *brokerclient.Party
}

// fetchParties returns the hub's producers and channels, and the consumers of
// those channels that the file declares.
func (s *partySync) fetchParties(ctx context.Context, wanted []wantedParty) (all []storedParty, err error) {
	lists := []domain.PartyList{domain.Producers, domain.Channels}
	hasChannel := make(map[domain.PartyID]bool) // channels that the file declares
	for _, w := range wanted {
		switch {
		case w.ID.IsConsumer():
			hasChannel[w.ID.Channel()] = true
		case w.ID.List() == domain.Channels:
			hasChannel[w.ID] = true
		}
	}
	for i := 0; i < len(lists); i++ { // each declared channel appends the list of its consumers
		for party, err := range s.client.List(ctx, listOf(lists[i])) {
			if err != nil {
				return nil, err
			}
			id, err := lists[i].Parse(party.ID)
			if err != nil {
				return nil, fmt.Errorf("the answer of the hub cannot be read: %w", err)
			}
			all = append(all, storedParty{id, party})
			if lists[i] == domain.Channels && hasChannel[id] {
				lists = append(lists, id.Consumers())
			}
		}
	}
	return all, nil
}

// listOf converts a list's kind to the type of the broker's client.
func listOf(l domain.PartyList) brokerclient.PartyList {
	channel, isConsumers := l.Channel()
	switch {
	case isConsumers:
		return brokerclient.Consumers(channel.String())
	case l == domain.Channels:
		return brokerclient.Channels
	default:
		return brokerclient.Producers
	}
}

// planParties returns the steps that change the parties stored into wanted, in
// the order in which they must run. It fails if no steps can do this.
func planParties(wanted []wantedParty, stored []storedParty) ([]partyStep, error) {
	is := make(map[domain.PartyID]*brokerclient.Party, len(stored))
	for _, s := range stored {
		is[s.id] = s.party
	}
	will := make(map[domain.PartyID]bool)
	var steps []partyStep
	var faults []error
	for _, w := range wanted {
		step := partyStep{wanted: w, stored: is[w.ID]}
		will[w.ID] = true
		switch {
		case step.stored != nil:
			step.why = partyDifferences(step.stored, &w)
		case w.ID.IsConsumer() && is[w.ID.Channel()] == nil && !will[w.ID.Channel()]:
			faults = append(faults, fmt.Errorf("%s: channel %s is neither in the file nor in the hub", w.ID.Describe(), w.ID.Channel()))
		case w.token == "":
			faults = append(faults, fmt.Errorf("%s: it is new and has no token; name a token-file or a token-env", w.ID.Describe()))
		}
		steps = append(steps, step)
	}
	return steps, errors.Join(faults...)
}

// partyDifferences describes each member in which the stored party differs from
// w.
func partyDifferences(is *brokerclient.Party, w *wantedParty) (why []string) {
	if w.Name != "" && w.Name != is.Name {
		why = append(why, fmt.Sprintf("name: %s → %s", is.Name, w.Name))
	}
	if w.CallbackURL != is.CallbackURL {
		why = append(why, fmt.Sprintf("callback-url: %s → %s", is.CallbackURL, w.CallbackURL))
	}
	return why
}

// carryOut executes a step, and reports whether the party changed. A step with
// a token is always sent, except in a dry run, because only the hub can compare
// tokens.
func (s *partySync) carryOut(ctx context.Context, step *partyStep) (isChange bool, err error) {
	isChange = step.stored == nil || len(step.why) > 0
	w := &step.wanted
	if s.isDryRun || !isChange && w.token == "" {
		return isChange, nil
	}
	put, created, err := s.client.Put(ctx, refOf(w.ID), &brokerclient.Draft{Name: w.Name, Token: w.token, CallbackURL: w.CallbackURL})
	switch {
	case err != nil:
		return false, err
	case created || step.stored == nil:
		return true, nil
	}
	if !put.Changed.Equal(step.stored.Changed) && len(step.why) == 0 {
		step.why = []string{"its token is replaced"}
		return true, nil
	}
	return isChange, nil
}

// showStep prints a step.
func (s *partySync) showStep(step *partyStep, isChange bool) {
	action := "keep"
	switch {
	case step.stored == nil:
		action = "create"
	case isChange:
		action = "update"
	}
	fmt.Fprintf(s.p.out, "%-16s %s\n", action, partyLine(step.wanted.ID, step.wanted.CallbackURL))
	for _, why := range step.why {
		fmt.Fprintf(s.p.out, "    %s\n", terminal.Clip(terminal.Printable(why), 200))
	}
	if s.isDryRun && step.stored != nil && step.wanted.token != "" {
		fmt.Fprintln(s.p.out, "    its token is sent: only the hub can compare it")
	}
}

// showOthers prints those of the hub's parties that the file does not declare.
func (s *partySync) showOthers(wanted []wantedParty, stored []storedParty) {
	inFile := make(map[domain.PartyID]bool)
	for _, w := range wanted {
		inFile[w.ID] = true
	}
	for _, other := range stored {
		if !inFile[other.id] {
			fmt.Fprintf(s.p.out, "%-16s %s\n", "not in the file", partyLine(other.id, other.party.CallbackURL))
		}
	}
}

func partyLine(id domain.PartyID, url string) string {
	return strings.TrimSpace(id.Describe() + "  " + terminal.Clip(terminal.Printable(url), 60))
}
