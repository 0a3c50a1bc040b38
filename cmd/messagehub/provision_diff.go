package main

import (
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/cmd/node"
	cosmosclient "github.com/messagehub/messagehub/cosmos/client"
)

// reportDifferences prints a line for each difference between the existing
// resources and the table, including differences with which a hub can work.
func (p *process) reportDifferences(all []node.Resource) error {
	if len(all) == 0 {
		fmt.Fprintln(p.out, nothingToProvision)
		return nil
	}
	isSame := true
	line := func(state string, r *node.Resource, text string) {
		isSame = isSame && r.State == cosmosclient.StateExtra
		fmt.Fprintf(p.out, "%-9s %s %s %s%s\n", state, r.Service, r.Kind, r.Name, text)
	}
	for i := range all {
		r := &all[i]
		if r.State == cosmosclient.StateMissing || r.State == cosmosclient.StateExtra {
			line(string(r.State), r, "")
			continue
		}
		for _, text := range append(r.Left, r.Notes...) {
			state := "differs"
			if r.State == cosmosclient.StateUnknown {
				state = string(r.State)
			}
			line(state, r, ": "+strings.TrimPrefix(text, r.Kind+" "+r.Name+": "))
		}
		if r.State == cosmosclient.StateUnknown && len(r.Left) == 0 {
			line(string(r.State), r, "")
		}
	}
	if isSame {
		return nil
	}
	return exitError(exitFailed)
}
