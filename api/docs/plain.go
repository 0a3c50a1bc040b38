package docs

import (
	"regexp"
	"strings"
)

// linkPattern matches a Markdown link.
var linkPattern = regexp.MustCompile(`\[([^\]\n]+)\]\(([^)\s]+)\)`)

// Plain returns the Markdown of the page for a terminal. Each link is replaced by text that says
// how to open its target.
func (p *Page) Plain() string {
	var b strings.Builder
	isCode := false
	for line := range strings.Lines(p.text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			isCode = !isCode
		}
		if !isCode {
			line = p.plainLine(line)
		}
		b.WriteString(line)
	}
	return b.String()
}

// plainLine returns a line of prose for a terminal.
func (p *Page) plainLine(line string) string {
	return linkPattern.ReplaceAllStringFunc(line, func(link string) string {
		parts := linkPattern.FindStringSubmatch(link)
		text, target := parts[1], parts[2]
		switch linked, heading := p.resolveLink(target); {
		case strings.Contains(target, "://"):
			return text + " (" + target + ")"
		case linked == nil || linked.Topic == p.Topic:
			return text
		case heading == "":
			return text + " (messagehub help " + linked.Topic + ")"
		default:
			return text + " (messagehub help " + linked.Topic + ", " + heading + ")"
		}
	})
}
