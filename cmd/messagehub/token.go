package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/devissuer"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// maxLifetime is the maximum lifetime of a development issuer's token.
const maxLifetime = 24 * time.Hour

// A tokenRequest contains the flags of messagehub token.
type tokenRequest struct {
	actors, domains, roles []string
	subject                string
	lifetime               time.Duration
}

func (p *process) tokenCommand() *cobra.Command {
	var r tokenRequest
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create a token for a hub that runs with --dev-issuer",
		Long: "Print a token for a hub on this machine that runs with messagehub serve --dev-issuer.\n" +
			"Commands that call a hub send the token in " + ownTokenVariable + " or in --token-file. A hub in production has\n" +
			"the issuer of its organization, such as Microsoft Entra, which issues its tokens.",
		Example: "  export " + ownTokenVariable + "=$(messagehub token --actor 5790001330552)\n" +
			"  messagehub token --domain Charges --domain TimeSeries\n" +
			"  messagehub token --role operator",
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringArrayVar(&r.actors, "actor", nil, "act for the actor with this `ID`; may be given more than once")
	cmd.Flags().StringArrayVar(&r.domains, "domain", nil, "announce events of the origin `NAME`; may be given more than once")
	cmd.Flags().StringArrayVar(&r.roles, "role", nil, "`ROLE` of the token: operator, operator.read or metrics; may be given more than once")
	cmd.Flags().StringVar(&r.subject, "subject", "", "`NAME` of the owner of the token (default: your login name)")
	cmd.Flags().DurationVar(&r.lifetime, "lifetime", time.Hour, "`TIME` for which the token is valid, up to 24h")
	config.AddFlags(cmd.Flags(), "data")
	cmd.Flags().Lookup("data").Usage = "data `FOLDER` of the hub"
	cmd.RunE = p.do(func(_ context.Context, _ []string) error {
		claims, err := r.newClaims(time.Now())
		if err != nil {
			return p.usage("%w", err)
		}
		cfg, err := config.Load(config.Inputs{Environ: p.environ, Flags: cmd.Flags()})
		if err != nil {
			return err
		}
		issuer, err := devissuer.Read(cfg.Data)
		if err != nil {
			return err
		}
		token, err := issuer.Sign(claims)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.out, token)
		return err
	})
	return cmd
}

// newClaims returns the claims of the requested token.
func (r *tokenRequest) newClaims(now time.Time) (c devissuer.Claims, err error) {
	for _, actor := range r.actors {
		if _, err := domain.ParseActorID(actor); err != nil {
			return c, fmt.Errorf("--actor: %w", err)
		}
	}
	if len(r.actors) > 0 {
		c.Actors, c.Roles = r.actors, append(c.Roles, "actor")
	}
	for _, name := range r.domains {
		if _, err := domain.ParseOrigin(name); err != nil {
			return c, fmt.Errorf("--domain: %w", err)
		}
		c.Roles = append(c.Roles, "domain:"+name)
	}
	for _, role := range r.roles {
		switch role {
		case "operator", "operator.read", "metrics":
			c.Roles = append(c.Roles, role)
		default:
			return c, fmt.Errorf("--role: want operator, operator.read or metrics, got %q; --actor and --domain have roles of their own", role)
		}
	}
	if len(c.Roles) == 0 {
		return c, fmt.Errorf("--actor, --domain and --role are missing; a token without a role permits nothing")
	}
	if r.lifetime < time.Second || r.lifetime > maxLifetime {
		return c, fmt.Errorf("--lifetime: want 1s to %v, got %v", maxLifetime, r.lifetime)
	}
	if c.Subject = r.subject; c.Subject == "" {
		c.Subject = loginName()
	}
	c.Expires = now.Add(r.lifetime)
	return c, nil
}
