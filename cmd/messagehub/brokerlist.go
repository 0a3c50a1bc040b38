package main

import (
	"encoding/json"
	"fmt"
	"iter"

	"github.com/spf13/cobra"
)

func addLimit(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 100, "show at most `NUMBER` rows")
}

// showList prints up to limit elements of a list, either with show or as a JSON
// object whose only member, named member, is an array. If the list is longer,
// it says so on standard error.
func showList[T any](b *brokerCommand, all iter.Seq2[*T, error], limit int, member string, show func([]*T) error) error {
	found, hasMore, err := collectUpTo(all, limit)
	if err != nil {
		return err
	}
	if b.json {
		err = b.p.showElements(member, found)
	} else {
		err = show(found)
	}
	if err == nil && hasMore {
		fmt.Fprintln(b.p.err, "messagehub: the list is longer; --limit shows more of it")
	}
	return err
}

// collectUpTo returns up to limit elements, and whether there are more.
func collectUpTo[T any](all iter.Seq2[*T, error], limit int) (found []*T, hasMore bool, err error) {
	for element, err := range all {
		if err != nil {
			return nil, false, err
		}
		if len(found) == limit {
			return found, true, nil
		}
		found = append(found, element)
	}
	return found, false, nil
}

// showElements prints a list as a JSON object whose only member is an array.
func (p *process) showElements(member string, elements any) error {
	text, err := json.Marshal(elements)
	if err != nil {
		return err
	}
	if string(text) == "null" {
		text = []byte("[]")
	}
	return json.NewEncoder(p.out).Encode(map[string]json.RawMessage{member: text})
}
