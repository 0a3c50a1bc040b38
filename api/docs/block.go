package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// A renderer converts one Markdown page to HTML.
type renderer struct {
	out strings.Builder
	ids headingIDs

	// resolve returns the address to which a link leads, and reports whether the target exists in
	// the site. If it does not exist, only the text of the link is rendered.
	resolve func(target string) (address string, exists bool)
}

// renderPage returns the Markdown text as HTML.
func renderPage(text string, resolve func(target string) (address string, exists bool)) string {
	r := &renderer{ids: make(headingIDs), resolve: resolve}
	r.renderBlocks(strings.Split(strings.TrimRight(text, "\n"), "\n"), false)
	return r.out.String()
}

var (
	headingPattern = regexp.MustCompile(`^(#{1,6}) +(.+)$`)
	itemPattern    = regexp.MustCompile(`^(- |[0-9]{1,2}\. )(.*)$`)
	rulerPattern   = regexp.MustCompile(`^\|( *:?-+:? *\|)+$`) // the row between the head and the body of a table
)

const fence = "```"

// renderBlocks renders lines. If isTight is true, lines are an item of a tight list, whose
// paragraphs have no <p> element.
func (r *renderer) renderBlocks(lines []string, isTight bool) {
	for len(lines) > 0 {
		n := 1
		switch line := lines[0]; {
		case line == "":
		case strings.HasPrefix(line, fence):
			n = r.renderCode(lines)
		case headingPattern.MatchString(line):
			r.renderHeading(line)
		case isTable(lines):
			n = r.renderTable(lines)
		case itemPattern.MatchString(line):
			n = r.renderList(lines)
		default:
			n = r.renderParagraph(lines, isTight)
		}
		lines = lines[n:]
	}
}

// isTable reports whether lines begin with a table.
func isTable(lines []string) bool {
	return len(lines) > 1 && strings.HasPrefix(lines[0], "|") && rulerPattern.MatchString(lines[1])
}

// beginsBlock reports whether a line begins a new block, so that it ends the paragraph before it.
func beginsBlock(line string) bool {
	return line == "" || strings.HasPrefix(line, fence) || headingPattern.MatchString(line) || itemPattern.MatchString(line)
}

func (r *renderer) renderHeading(line string) {
	match := headingPattern.FindStringSubmatch(line)
	level, text := len(match[1]), strings.TrimSpace(match[2])
	fmt.Fprintf(&r.out, "<h%d id=\"%s\">", level, r.ids.nextID(text))
	r.renderInline(text)
	fmt.Fprintf(&r.out, "</h%d>\n", level)
}

// renderParagraph renders the paragraph at the beginning of lines and returns its number of lines.
func (r *renderer) renderParagraph(lines []string, isTight bool) int {
	n := 1
	for n < len(lines) && !beginsBlock(lines[n]) {
		n++
	}
	text := make([]string, n)
	for i, line := range lines[:n] {
		text[i] = strings.TrimSpace(line)
	}
	if isTight {
		r.renderInline(strings.Join(text, "\n"))
		if n < len(lines) {
			r.out.WriteString("\n")
		}
		return n
	}
	r.out.WriteString("<p>")
	r.renderInline(strings.Join(text, "\n"))
	r.out.WriteString("</p>\n")
	return n
}

// renderCode renders the fenced code at the beginning of lines and returns its number of lines.
func (r *renderer) renderCode(lines []string) int {
	r.out.WriteString("<pre><code")
	if language := strings.TrimPrefix(lines[0], fence); language != "" {
		r.out.WriteString(` class="language-` + escapeHTML(language) + `"`)
	}
	r.out.WriteString(">")
	defer r.out.WriteString("</code></pre>\n")
	for i, line := range lines[1:] {
		if line == fence {
			return i + 2
		}
		r.out.WriteString(escapeHTML(line) + "\n")
	}
	return len(lines)
}

// renderTable renders the table at the beginning of lines and returns its number of lines.
func (r *renderer) renderTable(lines []string) int {
	r.out.WriteString("<table>\n<thead>\n")
	r.renderRow(lines[0], "th")
	r.out.WriteString("</thead>\n<tbody>\n")
	n := 2
	for n < len(lines) && strings.HasPrefix(lines[n], "|") {
		r.renderRow(lines[n], "td")
		n++
	}
	r.out.WriteString("</tbody>\n</table>\n")
	return n
}

func (r *renderer) renderRow(line, element string) {
	r.out.WriteString("<tr>\n")
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	for cell := range strings.SplitSeq(line, "|") {
		r.out.WriteString("<" + element + ">")
		r.renderInline(strings.TrimSpace(cell))
		r.out.WriteString("</" + element + ">\n")
	}
	r.out.WriteString("</tr>\n")
}

// renderList renders the list at the beginning of lines and returns its number of lines.
func (r *renderer) renderList(lines []string) int {
	items, n, isTight := readItems(lines)
	element := "ul"
	if lines[0][0] != '-' {
		element = "ol"
	}
	r.out.WriteString("<" + element + ">\n")
	for _, item := range items {
		r.out.WriteString("<li>")
		if !isTight {
			r.out.WriteString("\n")
		}
		r.renderBlocks(item, isTight)
		r.out.WriteString("</li>\n")
	}
	r.out.WriteString("</" + element + ">\n")
	return n
}

// readItems returns the items of the list at the beginning of lines, without markers and
// indentation, and the number n of lines of the list. isTight reports whether the list is tight,
// which means that it has no blank line outside code.
func readItems(lines []string) (items [][]string, n int, isTight bool) {
	isOrdered := lines[0][0] != '-'
	isTight = true
	var item []string
	indent, isCode := "", false
	for n < len(lines) {
		line := lines[n]
		switch match := itemPattern.FindStringSubmatch(line); {
		case match != nil && (line[0] != '-') == isOrdered:
			if item != nil {
				isTight = isTight && item[len(item)-1] != ""
				items = append(items, trimBlank(item))
			}
			item, indent = []string{match[2]}, strings.Repeat(" ", len(match[1]))
		case line == "":
			item = append(item, "")
		case strings.HasPrefix(line, indent):
			line = strings.TrimPrefix(line, indent)
			isTight = isTight && (isCode || item[len(item)-1] != "")
			if strings.HasPrefix(line, fence) {
				isCode = !isCode
			}
			item = append(item, line)
		default:
			return append(items, trimBlank(item)), n, isTight
		}
		n++
	}
	return append(items, trimBlank(item)), n, isTight
}

// trimBlank returns lines without the blank lines at the end.
func trimBlank(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
