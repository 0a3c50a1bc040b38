package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/subscriptionfile"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

// A syncCommand contains the flags of messagehub subscriptions sync.
type syncCommand struct {
	p      *process
	a      actorCommand
	dryRun bool
	prune  bool
}

func (p *process) subscriptionsSync() *cobra.Command {
	s := &syncCommand{p: p}
	cmd := &cobra.Command{
		Use:   "sync FILE.yaml",
		Short: "Create and change the subscriptions of an actor from a file",
		Long: "Create and change the subscriptions of an actor from a file. The command may be repeated: without a\n" +
			"difference, nothing is changed. Subscriptions that are not in the file are kept, unless --prune is given.\n" +
			"The whole file is checked before anything is changed. Example:\n\n" +
			"  actor: 5790001330552\n" +
			"  subscriptions:\n" +
			"    - uuid: 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41    # any UUID, such as one from uuidgen\n" +
			"      callback_url: https://example.org/hook\n" +
			"      jmespath_query: type == 'made'\n" +
			"      hmac_secret_key_file: hook.key                # or hmac_secret_key_env: NAME; default: the stored one\n" +
			"      headers_file: {X-Api-Key: api.key}            # or headers_env, headers; default: the stored one\n" +
			"      max_rate: 5                                   # calls per second; default: no limit\n" +
			"      paused: false\n\n" +
			"Further members: topic, method, encoding, form_fields, payload_form_field, hmac_key_id, attachments,\n" +
			"hmac_secret_key, delivery, max_concurrency and ordered, as in the HTTP API. Other files are\n" +
			"relative to the folder of FILE.yaml.",
		Example: "  messagehub subscriptions sync subscriptions.yaml --dry-run\n" +
			"  messagehub subscriptions sync subscriptions.yaml --prune",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one FILE")
			}
			return nil
		},
	}
	s.a.addFlags(p, cmd)
	cmd.Flags().Lookup("actor").Usage = "`ID` of the actor; default: the actor in the file"
	dataFlag(cmd.Flags())
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "print what would be done, and change nothing")
	cmd.Flags().BoolVar(&s.prune, "prune", false, "delete the subscriptions of the actor that are not in the file")
	cmd.RunE = p.do(func(ctx context.Context, args []string) error {
		f, err := s.readFile(args[0])
		if err != nil {
			return err
		}
		if s.a.actor == "" {
			s.a.actor = f.Actor.String()
		}
		hub, err := s.a.checkActor(p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		if f.Actor.String() != "" && f.Actor.String() != s.a.actor {
			return p.usage("--actor: %s has the subscriptions of %s", args[0], f.Actor)
		}
		for i := range f.Subscriptions {
			if err := p.useOperatorTokenFor(f.Subscriptions[i].Draft.Topic, config.Inputs{Flags: cmd.Flags()}, hub); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(ctx, s.a.timeout)
		defer cancel()
		return s.syncAll(ctx, hub, f)
	})
	return cmd
}

func (p *process) subscriptionsExport() *cobra.Command {
	s := &subscriptionsCommand{p: p}
	return s.command("export", "Print the subscriptions of an actor as a file for sync",
		"The file has no secrets and no headers, because the hub never returns them. sync keeps the stored ones.",
		func(ctx context.Context, _ domain.SubscriptionID) error {
			all, err := s.hub.Subscriptions(ctx, s.a.actor)
			if err != nil {
				return err
			}
			for _, one := range all {
				if len(one.Unknown) > 0 {
					fmt.Fprintf(p.err, "messagehub: warning: %s has %s, which this version does not know; it is not in the file\n", one.ID, strings.Join(one.Unknown, ", "))
				}
			}
			return subscriptionfile.Export(p.out, s.a.actor, all)
		})
}

// readFile reads a file of subscriptions. The names of key files in it are
// relative to the file's folder.
func (s *syncCommand) readFile(name string) (file *subscriptionfile.File, err error) {
	input, _, err := s.p.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, input.Close()) }()
	return subscriptionfile.Parse(input, name, subscriptionfile.Source{
		File: func(key string) (string, error) {
			if !filepath.IsAbs(key) {
				key = filepath.Join(filepath.Dir(name), key)
			}
			lines, err := readSecretFile(key)
			if err != nil {
				return "", err
			}
			return lines[0], nil
		},
		Variable: s.p.variable,
		NewID:    newSubscriptionID,
	})
}

func (s *syncCommand) syncAll(ctx context.Context, hub *hubclient.Client, f *subscriptionfile.File) error {
	stored, err := hub.Subscriptions(ctx, s.a.actor)
	if err != nil {
		return err
	}
	steps, err := subscriptionfile.Plan(f, stored, s.prune)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	changes := 0
	for i := range steps {
		step := &steps[i]
		if !s.dryRun {
			if err := s.carryOut(ctx, hub, step); err != nil {
				return fmt.Errorf("%s %s: %w; before the failure: %s; the command may be repeated", step.Action, step.ID, explainRefusal(err), terminal.CountOf(int64(changes), "change"))
			}
		}
		if step.Action != subscriptionfile.Keep && step.Action != subscriptionfile.Ignore {
			changes++
		}
		s.showStep(step)
	}
	switch {
	case s.dryRun:
		_, err = fmt.Fprintf(s.p.out, "%s would be made; this was a dry run, nothing was changed\n", terminal.CountOf(int64(changes), "change"))
	default:
		_, err = fmt.Fprintf(s.p.out, "%s made\n", terminal.CountOf(int64(changes), "change"))
	}
	return err
}

// carryOut executes one step.
func (s *syncCommand) carryOut(ctx context.Context, hub *hubclient.Client, step *subscriptionfile.Step) (err error) {
	switch step.Action {
	case subscriptionfile.Create, subscriptionfile.Update, subscriptionfile.Keep:
		if step.Sends {
			hidden := hubclient.Hidden{Secret: step.Entry.Secret, Headers: step.Entry.Headers}
			_, _, err = hub.PutSubscription(ctx, s.a.actor, step.ID, &step.Entry.Draft, hidden)
		}
	case subscriptionfile.Pause, subscriptionfile.Resume:
		_, err = hub.SetPaused(ctx, s.a.actor, step.ID, step.Action == subscriptionfile.Pause)
	case subscriptionfile.Delete:
		err = hub.DeleteSubscription(ctx, s.a.actor, step.ID)
	case subscriptionfile.Ignore:
	}
	return err
}

// showStep prints a step, and the members that differ.
func (s *syncCommand) showStep(step *subscriptionfile.Step) {
	fmt.Fprintf(s.p.out, "%-16s %s  %s\n", step.Action, step.ID, terminal.Clip(terminal.Printable(step.URL), 60))
	for _, why := range step.Why {
		fmt.Fprintf(s.p.out, "    %s\n", terminal.Clip(terminal.Printable(why), 200))
	}
	if !step.Sends || step.Action != subscriptionfile.Keep {
		return
	}
	if step.Entry.Secret != nil {
		fmt.Fprintln(s.p.out, "    its key is sent: only the hub can compare it")
	}
	if len(step.Entry.Headers) > 0 {
		fmt.Fprintln(s.p.out, "    its headers are sent: only the hub can compare their values")
	}
}
