package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// headingIDs generates the ids of the headings of a page. The ids are those of GitHub, so that a
// link to a heading works both in the tree and on the site: lower case, without punctuation, and
// with hyphens instead of spaces. If a page has the same heading several times, the later ids have
// numbers. The map has the number of uses of each id.
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
