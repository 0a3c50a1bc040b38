package docs

import "strings"

// escaper replaces the special characters of HTML.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

func escapeHTML(text string) string { return escaper.Replace(text) }

// renderText returns the HTML of a paragraph, with the texts of links instead of links.
func renderText(text string) string {
	r := &renderer{resolve: func(string) (string, bool) { return "", false }}
	r.renderInline(text)
	return r.out.String()
}

// renderInline renders text, including its code, emphasis and links.
func (r *renderer) renderInline(text string) {
	for text != "" {
		n := 0
		switch text[0] {
		case '`':
			n = r.renderCodeSpan(text)
		case '[':
			n = r.renderLink(text)
		case '*':
			if n = r.renderEmphasis(text, "**", "strong"); n == 0 {
				n = r.renderEmphasis(text, "*", "em")
			}
		}
		if n == 0 {
			n = 1
			r.out.WriteString(escapeHTML(text[:n]))
		}
		text = text[n:]
	}
}

// renderCodeSpan renders the code span at the beginning of text and returns its length. It returns 0 if
// the code span has no end.
func (r *renderer) renderCodeSpan(text string) int {
	end := strings.IndexByte(text[1:], '`')
	if end < 0 {
		return 0
	}
	r.out.WriteString("<code>" + escapeHTML(strings.ReplaceAll(text[1:1+end], "\n", " ")) + "</code>")
	return end + 2
}

// renderEmphasis renders the text between two marks at the beginning of text and returns its
// length. It returns 0 if the marks do not enclose an emphasis.
func (r *renderer) renderEmphasis(text, mark, element string) int {
	inner, isMarked := strings.CutPrefix(text, mark)
	end := strings.Index(inner, mark)
	if !isMarked || end <= 0 || strings.TrimSpace(inner[:end]) != inner[:end] {
		return 0
	}
	r.out.WriteString("<" + element + ">")
	r.renderInline(inner[:end])
	r.out.WriteString("</" + element + ">")
	return end + 2*len(mark)
}

// renderLink renders the link at the beginning of text and returns its length. It returns 0 if text
// does not begin with a link.
func (r *renderer) renderLink(text string) int {
	middle := strings.Index(text, "](")
	if middle < 0 {
		return 0
	}
	end := strings.IndexByte(text[middle:], ')')
	if end < 0 {
		return 0
	}
	label, target := text[1:middle], text[middle+2:middle+end]
	if strings.ContainsAny(target, " \n") {
		return 0
	}
	address, exists := r.resolve(target)
	if exists {
		r.out.WriteString(`<a href="` + escapeHTML(address) + `">`)
	}
	r.renderInline(label)
	if exists {
		r.out.WriteString("</a>")
	}
	return middle + end + 1
}
