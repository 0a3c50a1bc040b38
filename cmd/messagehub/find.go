package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

// foundKinds lists the kinds of ids for which a hub can search.
var foundKinds = []string{"event", "bundle", "request", "delivery", "trace", "published"}

// A findCommand contains the flags of messagehub find.
type findCommand struct {
	p                   *process
	url                 string
	actor, origin, kind string
	source, topic       string
	timeout             time.Duration
	json                bool
}

func (p *process) findCommand() *cobra.Command {
	f := &findCommand{p: p}
	cmd := &cobra.Command{
		Use:   "find ID",
		Short: "Show what is stored about an event, a bundle, a request, a delivery or a trace",
		Long: "Show what is stored about an id, in order of time, and what it waits for: each wait with its cause and what\n" +
			"to do about it. ID is the id of an event, of a bundle, of a request to a domain for the content of a bundle\n" +
			"(BUNDLE_ACTOR), of a delivery (SUBSCRIPTION.PRIORITY.NUMBER), or of a trace (32 digits, or a traceparent).\n\n" +
			"With --source, ID is the id of an event that was published to a topic. With --actor, the deliveries to the\n" +
			"subscriptions of that actor are shown, too.\n\n" +
			"An event may be in any mailbox. With --actor, only one is searched, at about the cost of a Peek. Without it, the\n" +
			"hub searches all mailboxes in the background, and the command waits until that is complete.\n\n" +
			"It needs the hub's token for operators, which comes from " + tokenVariable + " or, for a hub that has generated\n" +
			"one, from the file admin.token in its data folder (--data).\n\n" +
			"The exit status is 0 if something was found, 3 if nothing was, and 1 if the search failed or was stopped.",
		Example: "  messagehub find 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41\n" +
			"  messagehub find 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41 --actor 5790001330552 --json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want ID")
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", hubclient.DefaultAdminURL, "`URL` at which the hub serves operators (its setting admin-listen)")
	flags.StringVar(&f.actor, "actor", "", "search the mailbox of the actor with this `ID` only")
	flags.StringVar(&f.origin, "origin", "", "search for events from this `DOMAIN` only")
	flags.StringVar(&f.source, "source", "", "`URI` that is the source of an event of a topic; ID is the id of that event, and only topics are searched")
	flags.StringVar(&f.topic, "topic", "", "`NAME` of the topic of that event (default events)")
	flags.StringVar(&f.kind, "kind", "", "search for this `KIND` only: "+strings.Join(foundKinds, ", "))
	flags.DurationVar(&f.timeout, "timeout", 30*time.Minute, "give up after this `TIME`")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	dataFlag(flags)
	p.addAccess(flags)
	cmd.RunE = p.do(func(ctx context.Context, args []string) error {
		query, err := f.queryParameters(args[0])
		if err != nil {
			return p.usage("%w", err)
		}
		hub, err := p.newOperator(config.Inputs{Flags: flags}, f.url)
		if err != nil {
			return err
		}
		defer hub.Close()
		return f.run(ctx, hub, args[0], query)
	})
	return cmd
}

// queryParameters returns all query parameters except the id. It rejects values
// that a hub would reject.
func (f *findCommand) queryParameters(id string) (url.Values, error) {
	query := make(url.Values)
	if _, err := hubclient.New(f.url); err != nil {
		return nil, err
	}
	if id == "" {
		return nil, errors.New("want ID, got an empty one")
	}
	if f.actor != "" {
		if _, err := domain.ParseActorID(f.actor); err != nil {
			return nil, fmt.Errorf("--actor: %w", err)
		}
		query.Set("actor", f.actor)
	}
	if f.origin != "" {
		if _, err := domain.ParseOrigin(f.origin); err != nil {
			return nil, fmt.Errorf("--origin: %w", err)
		}
		query.Set("origin", f.origin)
	}
	if f.topic != "" && f.source == "" {
		return nil, errors.New("--topic: it needs --source; an event of a topic is identified by its source and its id")
	}
	for name, value := range map[string]string{"source": f.source, "topic": f.topic} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if f.kind != "" {
		if !slices.Contains(foundKinds, f.kind) {
			return nil, fmt.Errorf("--kind: want %s, got %q", strings.Join(foundKinds, ", "), domain.Shorten(f.kind))
		}
		query.Set("kind", f.kind)
	}
	return query, nil
}

// run searches for an id and prints the results.
func (f *findCommand) run(ctx context.Context, hub *hubclient.Client, id string, query url.Values) error {
	ctx, stop := terminal.UntilSignal(ctx)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	line := terminal.NewStatusLine(f.p.err)
	found, err := hub.Find(ctx, id, query, func(so *hubclient.Found) {
		if line.Watched {
			line.Draw(terminal.Clip("searched "+searchedText(&so.Looked), line.Columns()-1))
		}
	})
	line.Clear()
	if err != nil && len(found.Results) == 0 {
		return stoppedSearch(ctx, found, err)
	}
	if printed := f.printFound(found); printed != nil {
		return printed
	}
	switch {
	case err != nil:
		return stoppedSearch(ctx, found, err)
	case len(found.Results) == 0:
		return exitError(exitNoData)
	}
	return nil
}

// stoppedSearch returns the error of an interrupted search. It contains the
// number of mailboxes that were searched.
func stoppedSearch(ctx context.Context, found *hubclient.Found, err error) error {
	if ctx.Err() != nil {
		err = errors.New("stopped before the end")
	}
	if found.Looked.Mailboxes == 0 {
		return err
	}
	return fmt.Errorf("%w, after %s; the others were not searched", err, searchedText(&found.Looked))
}

func (f *findCommand) printFound(found *hubclient.Found) error {
	if f.json {
		text, err := json.MarshalIndent(found, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f.p.out, "%s\n", text)
		return err
	}
	_, err := fmt.Fprint(f.p.out, findText(found))
	return err
}
