package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// tokenVariable is the environment variable that contains the operators' token.
// There is no flag for the token, because other users of the machine can read
// command lines.
const tokenVariable = "MESSAGEHUB_ADMIN_TOKEN"

// variable returns the value of an environment variable, or "" if it is not set.
func (p *process) variable(name string) string {
	found := ""
	for _, entry := range p.environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			found = value
		}
	}
	return found
}

// newOperator returns a client that sends the operators' token, if one is
// configured. It warns if the connection is not encrypted.
func (p *process) newOperator(in config.Inputs, url string) (*hubclient.Client, error) {
	c, err := p.newHub(url)
	if err != nil {
		return nil, err
	}
	p.access.isOperator = true
	if admin := p.variable(tokenVariable); c.Token == "" || p.access.tokenFile == "" && admin != "" {
		if c.Token, err = p.operatorToken(in, c); err != nil {
			return nil, err
		}
		if c.Token != "" {
			p.warnIfReadable(c, "the operator's token")
		}
	}
	return c, nil
}

// useOperatorTokenFor makes a client without a token send the operators' token,
// if the hub requires it for topic.
func (p *process) useOperatorTokenFor(topic string, in config.Inputs, c *hubclient.Client) (err error) {
	if topic != domain.ObjectsTopic || c.Token != "" {
		return nil
	}
	if c.Token, err = p.operatorToken(in, c); err != nil || c.Token == "" {
		return err
	}
	p.warnIfReadable(c, "the operator's token")
	return nil
}

// warnIfReadable warns if a client sends a secret over plain HTTP. The warning
// names the secret by what.
func (p *process) warnIfReadable(c *hubclient.Client, what string) {
	if !c.IsPrivate() {
		fmt.Fprintf(p.err, "messagehub: warning: %s is sent to %s over plain HTTP, where others can read it; use https, or a tunnel\n", what, c.Base)
	}
}

// operatorToken returns the operators' token from the environment or, if it is
// not set there, from the configuration or the hub's data folder. A token in
// the default folder belongs to a local hub, so it is sent to another machine
// only if a flag names the folder.
func (p *process) operatorToken(in config.Inputs, c *hubclient.Client) (string, error) {
	p.access.shown = ""
	if token := p.variable(tokenVariable); token != "" {
		p.access.shown = tokenVariable
		return token, nil
	}
	in.Environ = p.environ
	cfg, err := config.Load(in)
	if err != nil {
		return "", err
	}
	if cfg.Admin.Token != "" {
		p.access.shown = "the setting admin.token"
		return cfg.Admin.Token.Reveal(), nil
	}
	if cfg.IsDefault("data") && !c.IsLocal() {
		return "", nil
	}
	token, err := node.ReadAdminToken(cfg.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil // the hub's error says what to do
	case errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%w; run this command as the user that the hub runs as, or set %s", err, tokenVariable)
	}
	p.access.shown = node.AdminTokenFile(cfg.Data)
	return token.Reveal(), err
}

// dataFlag adds the flag for the data folder in which a hub stores its token.
func dataFlag(flags *pflag.FlagSet) {
	config.AddFlags(flags, "data")
	flags.Lookup("data").Usage = "data `FOLDER` of the hub; its token is there unless " + tokenVariable + " is set"
}

// loginName returns the user's login name, which is the default of --who.
func loginName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}

// A queueCommand contains the flags and the client that all commands about one
// queue share.
type queueCommand struct {
	p       *process
	url     string
	timeout time.Duration
	who     string
	why     string
	json    bool

	hub   *hubclient.Client
	actor domain.ActorID
}

// command returns a command whose first argument is ACTOR. If order is true,
// the command has the flags --who and --why.
func (q *queueCommand) command(use, short string, order bool, body func(ctx context.Context, args []string) error) *cobra.Command {
	names := strings.Fields(use)[1:]
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != len(names) {
				return fmt.Errorf("want %s", strings.Join(names, " and "))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&q.url, "url", hubclient.DefaultAdminURL, "`URL` at which the hub serves operators (its setting admin-listen)")
	dataFlag(cmd.Flags())
	cmd.Flags().DurationVar(&q.timeout, "timeout", time.Minute, "give up after this `TIME`")
	if order {
		cmd.Flags().StringVar(&q.why, "why", "", "`TEXT` with the reason, for the record (required)")
		cmd.Flags().StringVar(&q.who, "who", "", "`NAME` for the record (default: your login name)")
	} else {
		cmd.Flags().BoolVar(&q.json, "json", false, "print the hub's answer unchanged")
	}
	q.p.addAccess(cmd.Flags())
	cmd.RunE = q.p.do(func(ctx context.Context, args []string) error {
		if err := q.prepare(args[0], order); err != nil {
			return q.p.usage("%w", err)
		}
		var err error
		if q.hub, err = q.p.newOperator(config.Inputs{Flags: cmd.Flags()}, q.url); err != nil {
			return err
		}
		defer q.hub.Close()
		ctx, cancel := context.WithTimeout(ctx, q.timeout)
		defer cancel()
		return body(ctx, args[1:])
	})
	return cmd
}

func (q *queueCommand) prepare(actor string, order bool) (err error) {
	if _, err := hubclient.New(q.url); err != nil {
		return err
	}
	if q.actor, err = domain.ParseActorID(actor); err != nil {
		return err
	}
	if order {
		if q.who = cmp.Or(q.who, loginName()); q.who == "" {
			return fmt.Errorf("--who is missing, and your login name is not known; say who you are")
		}
		if q.why == "" {
			return fmt.Errorf("--why is missing; say why, for the record")
		}
	}
	return nil
}

// path returns the URL path of the queue, followed by more.
func (q *queueCommand) path(more string) string { return "/v1/admin/queues/" + q.actor.String() + more }

// order sends an operator's order, and reports that the hub executed the order.
func (q *queueCommand) order(ctx context.Context, what string, about map[string]string) (*http.Response, error) {
	fields := map[string]string{"who": q.who, "why": q.why}
	for name, value := range about {
		fields[name] = value
	}
	return q.hub.Do(ctx, http.MethodPost, q.path("/"+what), "", mustJSON(fields))
}
