package receiver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// Limits for the parts of a call that are printed.
const (
	maxShown = 200 // maximum number of runes of a header value or a path
	maxLines = 40  // maximum number of lines of a body
)

// shownHeaders lists the headers that are always printed, in addition to the
// headers that describe the body. Only calls to consumers of the broker have
// the broker's headers.
var shownHeaders = canonical(
	"Webhook-Id", "Webhook-Timestamp", webhook.AttemptHeader,
	webhook.ChannelHeader, webhook.ConsumerHeader, webhook.MessageHeader, webhook.PriorityHeader, webhook.RetryHeader,
)

func canonical(names ...string) []string {
	for i := range names {
		names[i] = http.CanonicalHeaderKey(names[i])
	}
	return names
}

func (r *Receiver) printText(c *call) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s %s  answered %d\n", c.time.UTC().Format("2006-01-02T15:04:05.000Z"), clean(c.request.Method), clean(c.request.URL.RequestURI()), c.status)
	line := func(name, value string) { fmt.Fprintf(&b, "  %-20s %s\n", name, value) }
	names := shownHeaders
	if r.opts.Headers {
		names = slices.Sorted(maps.Keys(c.request.Header))
	}
	for _, name := range names {
		for _, value := range c.request.Header[http.CanonicalHeaderKey(name)] {
			line(clean(strings.ToLower(name)), clean(r.headerValue(name, value)))
		}
	}
	line("verified", r.describeVerdict(c))
	if c.number > 1 {
		line("repeated", fmt.Sprintf("call %d with this id", c.number))
	}
	content := "no content type"
	if t := c.request.Header.Get("Content-Type"); t != "" {
		content = clean(t)
	}
	line("body", fmt.Sprintf("%s, %s", content, terminal.CountOf(int64(len(c.body)), "byte")))
	for _, text := range bodyLines(c.body, r.opts.ShowBody) {
		fmt.Fprintf(&b, "    %s\n", text)
	}
	b.WriteByte('\n')
	fmt.Fprint(r.opts.Out, b.String())
}

// describeVerdict says which schemes verified a call, or why the call was not
// verified.
func (r *Receiver) describeVerdict(c *call) string {
	switch {
	case c.problem != nil:
		return "NO: " + clean(c.problem.Error())
	case len(c.schemes) > 0:
		return "yes, " + joinSchemes(c.schemes)
	}
	return "not checked: no --secret, --hmac-key or --consumer-token is given"
}

func joinSchemes(schemes []webhook.Scheme) string {
	texts := make([]string, len(schemes))
	for i, s := range schemes {
		texts[i] = string(s)
	}
	return strings.Join(texts, " and ")
}

// headerValue returns the printable value of a header. For credentials, it
// returns only the authentication scheme.
func (r *Receiver) headerValue(name, value string) string {
	if slices.Contains(r.opts.Hidden, value) {
		return "..."
	}
	switch http.CanonicalHeaderKey(name) {
	case webhook.TokenHeader:
		return "..."
	case "Authorization", "Proxy-Authorization", "Cookie":
		scheme, _, found := strings.Cut(value, " ")
		if !found {
			return "..."
		}
		return scheme + " ..."
	}
	return value
}

// bodyLines returns the first limit bytes of a body as printable lines.
func bodyLines(body []byte, limit int) []string {
	if len(body) == 0 || limit < 0 {
		return nil
	}
	cut := len(body) > limit
	text := body[:min(len(body), limit)]
	for cut && len(text) > 0 && !utf8.Valid(text[max(0, len(text)-utf8.UTFMax):]) && len(text) > limit-utf8.UTFMax {
		text = text[:len(text)-1]
	}
	var lines []string
	for line := range strings.Lines(string(bytes.ToValidUTF8(text, []byte("?")))) {
		if len(lines) == maxLines {
			cut = true
			break
		}
		lines = append(lines, terminal.Printable(strings.TrimRight(line, "\r\n")))
	}
	if cut {
		lines = append(lines, fmt.Sprintf("… of %d bytes", len(body)))
	}
	return lines
}

func clean(s string) string {
	return terminal.Clip(terminal.Printable(strings.ToValidUTF8(s, "?")), maxShown)
}

// A printedCall is the JSON line that describes a call.
type printedCall struct {
	Time     time.Time         `json:"time"`
	Method   string            `json:"method"`
	Path     string            `json:"path"`
	Status   int               `json:"status"`
	Verified bool              `json:"verified"`
	Schemes  []webhook.Scheme  `json:"schemes"`
	Problem  string            `json:"problem,omitempty"`
	Number   int               `json:"number,omitempty"` // number of calls so far with this id
	Headers  map[string]string `json:"headers"`
	Bytes    int               `json:"bytes"`
	Body     string            `json:"body"` // first bytes of the body
}

func (r *Receiver) printJSON(c *call) {
	p := printedCall{
		Time: c.time.UTC(), Method: c.request.Method, Path: c.request.URL.RequestURI(), Status: c.status,
		Verified: len(c.schemes) > 0, Schemes: c.schemes, Number: c.number, Headers: make(map[string]string),
		Bytes: len(c.body), Body: strings.ToValidUTF8(string(c.body[:max(0, min(len(c.body), r.opts.ShowBody))]), "?"),
	}
	if c.problem != nil {
		p.Problem = c.problem.Error()
	}
	if p.Schemes == nil {
		p.Schemes = []webhook.Scheme{}
	}
	for name, values := range c.request.Header {
		if r.opts.Headers || name == "Content-Type" || slices.Contains(shownHeaders, name) {
			p.Headers[strings.ToLower(name)] = r.headerValue(name, strings.Join(values, ", "))
		}
	}
	var text strings.Builder
	if err := json.NewEncoder(&text).Encode(p); err != nil {
		r.opts.Logger.Error("a call cannot be printed", "error", err)
		return
	}
	fmt.Fprintln(r.opts.Out, terminal.Printable(strings.TrimSuffix(text.String(), "\n"))) // encoding/json does not escape all control characters
}
