package main

import (
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// explainUnauthorized returns what to set so that a hub accepts a command that
// it has answered with 401, "" for other errors. It names only flags that the
// command has.
func (p *process) explainUnauthorized(cmd *cobra.Command, err error) string {
	problem, isProblem := errors.AsType[*hubclient.Problem](err)
	if !isProblem || problem.Status != http.StatusUnauthorized {
		return ""
	}
	text := "this command has shown no token"
	if p.access.shown != "" {
		text = "this command has shown the token of " + p.access.shown
	}
	tokenFlag := "token-file"
	if cmd.Flags().Lookup("operator-token-file") != nil {
		tokenFlag = "operator-token-file"
	}
	hasTokenFlag := cmd.Flags().Lookup(tokenFlag) != nil
	switch {
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
