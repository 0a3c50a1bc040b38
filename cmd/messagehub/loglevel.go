package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// logLevelNames lists the log levels, spelled as in the setting log.level.
var logLevelNames = []string{"debug", "info", "warn", "error"}

// maxLogLevelAnswer is the maximum size of the hub's response, in bytes.
const maxLogLevelAnswer = 4 << 10

// A logLevelCommand contains the flags of messagehub log-level.
type logLevelCommand struct {
	p       *process
	url     string
	timeout time.Duration
	span    time.Duration
	who     string
	why     string
	json    bool
}

func (p *process) logLevelCommand() *cobra.Command {
	l := &logLevelCommand{p: p}
	cmd := &cobra.Command{
		Use:   "log-level [LEVEL]",
		Short: "Show the level of a hub's log, or change it for a while",
		Long: "Show the log level of a hub or, with LEVEL (debug, info, warn or error), change it for a while.\n" +
			"After that, or after a restart of the hub, the setting log.level applies again. To end a change at once, set the\n" +
			"configured level. Each node has its own level: choose the node with --url.\n\n" +
			"The order is recorded in the log of the hub, with its operator and reason.\n\n" +
			"The hub's token for operators comes from " + tokenVariable + " or, for a hub that has generated one,\n" +
			"from the file admin.token in its data folder (--data).",
		Example: "  messagehub log-level\n" +
			"  messagehub log-level debug --for 30m --why 'ticket 4711'",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return errors.New("want one LEVEL, or none to show the level")
			case len(args) == 1 && !slices.Contains(logLevelNames, args[0]):
				return fmt.Errorf("LEVEL: want %s, got %q", strings.Join(logLevelNames, ", "), args[0])
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&l.url, "url", hubclient.DefaultAdminURL, "`URL` at which the hub serves operators (its setting admin-listen)")
	flags.DurationVar(&l.timeout, "timeout", time.Minute, "give up after this `TIME`")
	flags.DurationVar(&l.span, "for", 10*time.Minute, "change the level for this `TIME`, from 1s to 24h")
	flags.StringVar(&l.why, "why", "", "`TEXT` with the reason, for the record (required with LEVEL)")
	flags.StringVar(&l.who, "who", "", "`NAME` for the record (default: your login name)")
	flags.BoolVar(&l.json, "json", false, "print the hub's answer unchanged")
	dataFlag(flags)
	p.addAccess(flags)
	cmd.RunE = p.do(func(ctx context.Context, args []string) error {
		if _, err := hubclient.New(l.url); err != nil {
			return p.usage("%w", err)
		}
		method, body := http.MethodGet, []byte(nil)
		if len(args) == 1 {
			if err := l.checkOrder(); err != nil {
				return p.usage("%w", err)
			}
			method, body = http.MethodPut, mustJSON(map[string]string{"level": args[0], "for": l.span.String(), "who": l.who, "why": l.why})
		} else if flags.Changed("for") || l.why != "" || l.who != "" {
			return p.usage("--for, --why and --who: want a LEVEL, too")
		}
		hub, err := p.newOperator(config.Inputs{Flags: flags}, l.url)
		if err != nil {
			return err
		}
		defer hub.Close()
		ctx, cancel := context.WithTimeout(ctx, l.timeout)
		defer cancel()
		return l.sendRequest(ctx, hub, method, body)
	})
	return cmd
}

func (l *logLevelCommand) checkOrder() error {
	if l.span < time.Second || l.span > 24*time.Hour {
		return fmt.Errorf("--for: want a time from 1s to 24h, got %s", l.span)
	}
	if l.who = cmp.Or(l.who, loginName()); l.who == "" {
		return errors.New("--who is missing, and your login name is not known; say who you are")
	}
	if l.why == "" {
		return errors.New("--why is missing; say why, for the record")
	}
	return nil
}

// sendRequest sends a request about the log level, and prints the level that
// the response contains.
func (l *logLevelCommand) sendRequest(ctx context.Context, hub *hubclient.Client, method string, body []byte) error {
	resp, err := hub.Do(ctx, method, "/v1/admin/log-level", "", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxLogLevelAnswer))
	if err != nil {
		return hub.Unreachable(err)
	}
	if l.json {
		return l.p.showJSON(text)
	}
	var shown struct {
		Level, Configured string
		Until             time.Time
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		return fmt.Errorf("the answer of %s is not from a hub: %w", hub.Base, err)
	}
	if shown.Until.IsZero() {
		fmt.Fprintln(l.p.out, shown.Level)
		return nil
	}
	fmt.Fprintf(l.p.out, "%s until %s, then %s\n", shown.Level, shown.Until.UTC().Format(time.RFC3339), shown.Configured)
	return nil
}
