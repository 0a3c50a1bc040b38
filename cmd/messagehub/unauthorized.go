package main

import (
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// explainUnauthorized returns advice for an error with status 401: the
// URL that was asked, because another hub may be there, and the variables and
// flags that set the missing token. It names only flags that cmd
// has. For other errors, it returns "".
func (p *process) explainUnauthorized(cmd *cobra.Command, err error) string {
	problem, isProblem := errors.AsType[*hubclient.Problem](err)
	if !isProblem || problem.Status != http.StatusUnauthorized {
		return ""
	}
	text := "this command sent no token"
	if p.access.shown != "" {
		text = "this command sent the token of " + p.access.shown
	}
	if p.access.url != "" {
		text += " to " + p.access.url
	}
	tokenFlag := "token-file"
	if cmd.Flags().Lookup("operator-token-file") != nil {
		tokenFlag = "operator-token-file"
	}
	hasTokenFlag := cmd.Flags().Lookup(tokenFlag) != nil
	switch {
	case p.access.isOperator && p.access.shown == tokenVariable && cmd.Flags().Changed("data"):
		text += "; the variable takes precedence over --data: unset it, and the command reads the token from the data folder"
	case p.access.isOperator:
		text += "; set " + tokenVariable + " to the token of the hub's operators"
		if cmd.Flags().Lookup("data") != nil {
			text += ", or name the data folder of the hub with --data"
		}
		if hasTokenFlag {
			text += ", or give a token of the issuer with --" + tokenFlag
		}
	case hasTokenFlag:
		text += "; set " + ownTokenVariable + " to a token of the issuer, or name a file that holds one with --" + tokenFlag
	default:
		return ""
	}
	return text
}
