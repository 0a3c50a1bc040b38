package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	public "github.com/messagehub/messagehub/api/hubclient"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain"
)

// An actorCommand contains the flags that all commands of an actor share.
type actorCommand struct {
	url     string
	actor   string
	timeout time.Duration
}

func (a *actorCommand) addFlags(p *process, cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.url, "url", hubclient.DefaultURL, "`URL` of the hub")
	cmd.Flags().StringVar(&a.actor, "actor", "", "`ID` of the actor (required)")
	cmd.Flags().DurationVar(&a.timeout, "timeout", time.Minute, "give up after this `TIME`")
	p.addAccess(cmd.Flags())
}

// checkActor checks that the actor's id is valid, and returns a client. --actor
// may be missing if the command has a token, because the token may name the
// actor.
func (a *actorCommand) checkActor(p *process) (*hubclient.Client, error) {
	hub, err := p.newHub(a.url)
	if err != nil {
		return nil, err
	}
	if a.actor == "" && hub.Token == "" && p.access.cert == "" {
		return nil, fmt.Errorf("--actor is missing; say who you are")
	}
	if _, err := domain.ParseActorID(a.actor); a.actor != "" && err != nil {
		return nil, fmt.Errorf("--actor: %w", err)
	}
	return hub, nil
}

func (p *process) peekCommand() *cobra.Command {
	var a actorCommand
	var group, bundle, format string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "peek --actor ID",
		Short: "Fetch the next bundle of an actor",
		Long: "Fetch the next bundle of an actor: its body to stdout, its id and types to stderr.\n" +
			"Until it is dequeued, peek fetches the same bundle again. After an interruption, the\n" +
			"download is resumed.\n\n" +
			"The exit status is 3 if no data waits for the actor.",
		Example: "  messagehub peek --actor 5790001330552 --group timeseries > bundle.json",
		Args:    cobra.NoArgs,
	}
	a.addFlags(p, cmd)
	cmd.Flags().StringVar(&group, "group", "", "only bundles of the group of domains with this `NAME`, such as timeseries")
	cmd.Flags().StringVar(&bundle, "bundle-id", "", "`ID` for the bundle if a new one is opened, a UUID")
	cmd.Flags().StringVar(&format, "format", "", "request content in this `FORMAT` from the domain, json or xml")
	cmd.Flags().Lookup("timeout").Usage = "give up after this `TIME`; an error response of the hub ends the command immediately"
	cmd.Flags().DurationVar(&wait, "wait", 0, "if there is no data, wait for it up to this `TIME`, such as 20s")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		opts, err := peekOptions(group, bundle, format, wait)
		if err != nil {
			return p.usage("%w", err)
		}
		hub, err := a.checkActor(p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		ctx, cancel := context.WithTimeout(ctx, wait+a.timeout)
		defer cancel()
		return p.peek(ctx, hub, a.actor, opts)
	})
	return cmd
}

func peekOptions(group, bundle, format string, wait time.Duration) (opts hubclient.PeekOptions, err error) {
	opts = hubclient.PeekOptions{Group: group, BundleID: bundle, Wait: wait}
	if group != "" {
		if _, err := domain.ParseGroup(group); err != nil {
			return opts, fmt.Errorf("--group: %w", err)
		}
	}
	if bundle != "" {
		if _, err := domain.ParseBundleID(bundle); err != nil {
			return opts, fmt.Errorf("--bundle-id: %w", err)
		}
	}
	if format != "" {
		f, err := domain.ParseFormat(format)
		if err != nil {
			return opts, fmt.Errorf("--format: %w", err)
		}
		opts.Format = string(f)
	}
	if wait < 0 {
		return opts, fmt.Errorf("--wait: want a time such as 20s, got %v", wait)
	}
	return opts, nil
}

func (p *process) peek(ctx context.Context, hub *hubclient.Client, actor string, opts hubclient.PeekOptions) error {
	b, err := hub.As(actor).Peek(ctx, actor, opts)
	if errors.Is(err, public.ErrNoData) {
		if actor == "" {
			actor = "the actor of the token"
		}
		fmt.Fprintf(p.err, "no data waits for %s\n", actor)
		return exitError(exitNoData)
	}
	if err != nil {
		return hub.ExplainError(err)
	}
	defer func() { _ = b.Close() }() // Close never fails
	fmt.Fprintf(p.err, "MessageId: %s\nMessageType: %s\nContent-Type: %s\n", b.ID, b.Type, b.ContentType)
	b.Interrupted = func(err error, received int64) {
		fmt.Fprintf(p.err, "messagehub: the connection broke: %v after %d bytes; fetching the rest\n", err, received)
	}
	if _, err := io.Copy(p.out, b); err != nil {
		if broken, ok := errors.AsType[*public.IncompleteBodyError](err); ok {
			err = broken.Err
		}
		return fmt.Errorf("the body is incomplete, so the output is not the whole bundle; peek again, and the hub repeats it (%w)", err)
	}
	return nil
}
