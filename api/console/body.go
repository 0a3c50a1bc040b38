package console

import (
	"encoding/json"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

const (
	maxShownBody = 100 << 10 // maximum bytes of a body on a page
	maxBodyHTML  = 200 << 10 // maximum bytes of the HTML for a body
)

// shownBody returns a body as text. It indents JSON, and escapes the bytes of a binary body.
func shownBody(body []byte) g.Node {
	note := g.Node(nil)
	if len(body) > maxShownBody {
		note = h.P(g.Text("The first 100 KB of it:"))
		body = body[:maxShownBody]
	}
	text := textOfBody(body)
	if shown := clipHTML(text); len(shown) < len(text) {
		note, text = h.P(g.Text("The beginning of it:")), shown
	}
	return g.Group{note, h.Pre(h.TabIndex("0"), h.Role("region"), h.Aria("label", "Body"), h.Code(bdi(text)))}
}

func textOfBody(body []byte) string {
	if json.Valid(body) {
		if text := indentJSON(body); len(text) <= maxBodyHTML {
			return text
		}
	}
	if text := trimRune(body); utf8.Valid(text) {
		return string(text)
	}
	return strconv.QuoteToASCII(string(body))
}

// trimRune removes an incomplete UTF-8 character from the end of a truncated text.
func trimRune(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

// clipHTML truncates a text so that its HTML has up to maxBodyHTML bytes.
func clipHTML(text string) string {
	size, at := 0, 0
	for line := range strings.Lines(text) {
		escaped := len(html.EscapeString(line))
		if size+escaped > maxBodyHTML {
			left := line[:min(len(line), (maxBodyHTML-size)/len("&#34;"))]
			return text[:at] + string(trimRune([]byte(left)))
		}
		size, at = size+escaped, at+len(line)
	}
	return text
}
