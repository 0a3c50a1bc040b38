package config

import (
	"fmt"
	"slices"
	"strings"
)

// suggestName returns a text with the known name most similar to name. If no
// known name is similar, the text lists all of them.
func suggestName(name string, known []string) string {
	best, least := "", 1+len(name)/2
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	sorted := slices.Sorted(slices.Values(known))
	return "known are " + strings.Join(sorted, ", ")
}

// editDistance returns the minimum number of letters to insert, delete or
// replace to convert a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
