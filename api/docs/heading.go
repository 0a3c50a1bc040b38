package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// headingIDs generates the ids of headings as GitHub does, so that a link to a
// heading works in the tree and on the site: lower case, without punctuation,
// with hyphens for spaces, and numbered if a page has the heading more than
// once. The value is how often an id was used.
type headingIDs map[string]int

var notInID = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// nextID returns the id of the next heading of the page.
func (h headingIDs) nextID(heading string) string {
	id := notInID.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
	id = strings.ReplaceAll(id, " ", "-")
	n := h[id]
	h[id]++
	if n > 0 {
		return fmt.Sprintf("%s-%d", id, n)
	}
	return id
}
