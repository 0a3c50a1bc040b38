package docs

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // embeds the style sheet
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// The two names of the index: IndexWithoutSlash for the address without a slash at the end, and Index for
// the address with a slash, which is the prefix of the pages.
const (
	Index             = ""
	IndexWithoutSlash = "/"
)

// styleSheet is the name of the style sheet, relative to the address of the site.
const styleSheet = "style.css"

//go:embed style.css
var styles []byte

// policy is a Content-Security-Policy that permits only the style sheet of the site.
const policy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A Site is a set of pages in HTML. All its links are relative, so that it can be served below any
// path. It is safe for concurrent use.
type Site struct {
	files map[string]siteFile // name → file
}

type siteFile struct {
	contentType string
	body        []byte
	etag        string
}

// ForOperators returns the site with all pages.
func ForOperators() *Site { return siteForOperators() }

// ForClients returns the site with the pages of the guide.
func ForClients() *Site { return siteForClients() }

// Each site is rendered when it is first used.
var (
	siteForOperators = sync.OnceValue(func() *Site { return newSite(allPages()) })
	siteForClients   = sync.OnceValue(func() *Site {
		var pages []Page
		for _, p := range allPages() {
			if !p.ForOperator {
				pages = append(pages, p)
			}
		}
		return newSite(pages)
	})
)

// newSite returns a site with the given pages.
func newSite(pages []Page) *Site {
	s := &Site{files: make(map[string]siteFile)}
	s.addFile(styleSheet, "text/css; charset=utf-8", styles)
	s.addFile(Index, htmlType, renderFrame("MessageHub", "", "", pages, indexOf(pages, "")))
	s.addFile(IndexWithoutSlash, htmlType, renderFrame("MessageHub", "", "docs/", pages, indexOf(pages, "docs/")))
	for i := range pages {
		p := &pages[i]
		body := renderPage(p.text, func(target string) (string, bool) { return addressOf(p, target, pages) })
		s.addFile(p.Topic, htmlType, renderFrame(p.Title+" · MessageHub", p.Topic, "", pages, body))
	}
	return s
}

const htmlType = "text/html; charset=utf-8"

func (s *Site) addFile(name, contentType string, body []byte) {
	digest := sha256.Sum256(body)
	s.files[name] = siteFile{contentType: contentType, body: body, etag: `"` + hex.EncodeToString(digest[:16]) + `"`}
}

// Serve replies to a request for a file of the site. name is a topic, a name of the index, or the
// name of the style sheet. If the site does not have the file, Serve writes nothing and returns
// false.
func (s *Site) Serve(w http.ResponseWriter, r *http.Request, name string) bool {
	f, exists := s.files[name]
	if !exists {
		return false
	}
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.etag)
	if strings.Contains(r.Header.Get("If-None-Match"), f.etag) { // a tag has 128 bits, so it is never a part of another tag
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	h.Set("Content-Length", strconv.Itoa(len(f.body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.body) // the write fails if the client has disconnected
	}
	return true
}

// addressOf returns the address to which a link of p leads in a site with the given pages.
func addressOf(p *Page, target string, pages []Page) (address string, exists bool) {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "#") {
		return target, true
	}
	linked, heading := p.resolveLink(target)
	if linked == nil {
		return "", false
	}
	for i := range pages {
		if pages[i].Topic == linked.Topic {
			if heading != "" {
				heading = "#" + heading
			}
			return linked.Topic + heading, true
		}
	}
	return "", false
}

// indexOf returns the HTML of the index of pages. below is the path of the pages, relative to the
// index.
func indexOf(pages []Page, below string) string {
	var b strings.Builder
	b.WriteString("<h1>MessageHub</h1>\n<p>The same pages on a terminal: <code>messagehub help TOPIC</code>.\nThe HTTP API: <a href=\"" + path.Join(below, "../openapi.yaml") + "\">openapi.yaml</a>.</p>\n")
	for _, part := range sectionsOf(pages) {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<dl>\n", part.name)
		for i := range part.pages {
			p := &part.pages[i]
			fmt.Fprintf(&b, "<dt><a href=\"%s\">%s</a></dt>\n<dd>%s</dd>\n", below+escapeHTML(p.Topic), escapeHTML(p.Title), renderText(p.Summary))
		}
		b.WriteString("</dl>\n")
	}
	return b.String()
}

// A siteSection is the guide or the handbook.
type siteSection struct {
	name  string
	pages []Page
}

// sectionsOf returns the sections that have at least one of the pages.
func sectionsOf(pages []Page) []siteSection {
	parts := []siteSection{{name: "For actors and domains"}, {name: "For operators"}}
	for i := range pages {
		at := 0
		if pages[i].ForOperator {
			at = 1
		}
		parts[at].pages = append(parts[at].pages, pages[i])
	}
	if len(parts[1].pages) == 0 {
		return parts[:1]
	}
	return parts
}

// renderFrame returns a complete HTML document with a list of pages and a body. below is the path
// of the pages, and topic is the topic of the current page.
func renderFrame(title, topic, below string, pages []Page, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<link rel="stylesheet" href="%s">
</head>
<body>
<header><a href="./%s"%s>MessageHub</a></header>
<main>
`, escapeHTML(title), below+styleSheet, below, currentAttribute(topic == ""))
	b.WriteString(body)
	b.WriteString("</main>\n<nav aria-label=\"Pages\">\n")
	for _, part := range sectionsOf(pages) {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<ul>\n", part.name)
		for i := range part.pages {
			p := &part.pages[i]
			fmt.Fprintf(&b, "<li><a href=\"%s\"%s>%s</a></li>\n", below+escapeHTML(p.Topic), currentAttribute(p.Topic == topic), escapeHTML(p.Title))
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("</nav>\n</body>\n</html>\n")
	return b.Bytes()
}

// currentAttribute returns the attribute for the link to the current page, or "" if the link leads
// to another page.
func currentAttribute(isPresent bool) string {
	if isPresent {
		return ` aria-current="page"`
	}
	return ""
}
