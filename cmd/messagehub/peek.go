package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain"
)

// An actorCommand is what peek and dequeue have in common.
type actorCommand struct {
	url     string
	actor   string
	timeout time.Duration
}

func (a *actorCommand) flags(p *process, cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.url, "url", hubclient.DefaultURL, "`URL` of the hub")
	cmd.Flags().StringVar(&a.actor, "actor", "", "`ID` of the actor (required)")
	cmd.Flags().DurationVar(&a.timeout, "timeout", time.Minute, "give up after this `TIME`")
	p.addAccess(cmd.Flags())
}

// check refuses what the hub would refuse. A token may say who the actor is.
func (a *actorCommand) check(p *process) (*hubclient.Client, error) {
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
			"Until it is dequeued, peek fetches the same bundle again. When the line breaks, it goes\n" +
			"on where it was.\n\n" +
			"The exit status is 3 if no data waits for the actor.",
		Example: "  messagehub peek --actor 5790001330552 --group timeseries > bundle.json",
		Args:    cobra.NoArgs,
	}
	a.flags(p, cmd)
	cmd.Flags().StringVar(&group, "group", "", "only from this `NAME`d group of domains, such as timeseries")
	cmd.Flags().StringVar(&bundle, "bundle-id", "", "suggest an `ID` for the bundle, a UUID")
	cmd.Flags().StringVar(&format, "format", "", "ask a domain for this `FORMAT`, json or xml")
	cmd.Flags().DurationVar(&wait, "wait", 0, "if there is no data, wait for some up to this `TIME`, such as 20s")
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		path, err := peekPath(group, bundle, format, wait)
		if err != nil {
			return p.usage("%w", err)
		}
		hub, err := a.check(p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		ctx, cancel := context.WithTimeout(ctx, wait+a.timeout)
		defer cancel()
		return p.peek(ctx, hub, a.actor, path)
	})
	return cmd
}

func peekPath(group, bundle, format string, wait time.Duration) (string, error) {
	path, query := "/v1/peek", url.Values{}
	if group != "" {
		if _, err := domain.ParseGroup(group); err != nil {
			return "", fmt.Errorf("--group: %w", err)
		}
		path += "/" + url.PathEscape(group)
	}
	if bundle != "" {
		if _, err := domain.ParseBundleID(bundle); err != nil {
			return "", fmt.Errorf("--bundle-id: %w", err)
		}
		query.Set("bundleId", bundle)
	}
	if format != "" {
		f, err := domain.ParseFormat(format)
		if err != nil {
			return "", fmt.Errorf("--format: %w", err)
		}
		query.Set("format", string(f))
	}
	if wait < 0 {
		return "", fmt.Errorf("--wait: want a time such as 20s, got %v", wait)
	}
	if wait > 0 {
		query.Set("wait", wait.String())
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}

func (p *process) peek(ctx context.Context, hub *hubclient.Client, actor, path string) error {
	resp, err := hub.Do(ctx, http.MethodGet, path, actor, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusNoContent {
		_ = resp.Body.Close()
		fmt.Fprintf(p.err, "no data waits for %s\n", actor)
		return exitError(exitNoData)
	}
	for _, name := range []string{"MessageId", "MessageType", "Content-Type"} {
		fmt.Fprintf(p.err, "%s: %s\n", name, resp.Header.Get(name))
	}
	d := &download{hub: hub, actor: actor, out: p.out, say: func(format string, args ...any) {
		fmt.Fprintf(p.err, "messagehub: "+format+"\n", args...)
	}}
	return d.run(ctx, resp)
}
