package docs

import (
	"cmp"
	"embed"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/api/guide"
	"github.com/messagehub/messagehub/deploy/handbook"
)

// A Page is a page of the handbook or of the guide.
type Page struct {
	Topic       string // name of the page's file, without .md
	Title       string
	Summary     string // first paragraph, as plain text
	ForOperator bool   // true for a page of the handbook, false for a page of the guide, which is for clients

	file string // path of the page's file from the top of the tree, with slashes
	text string // Markdown
}

// Pages returns all pages, first the pages of the guide, then the pages of the handbook.
func Pages() []Page { return slices.Clone(allPages()) }

var allPages = sync.OnceValue(func() []Page {
	pages := readPages("api/guide", guide.Pages, guide.Order)
	for _, p := range readPages("deploy/handbook", handbook.Pages, handbook.Order) {
		p.ForOperator = true
		pages = append(pages, p)
	}
	return pages
})

// Find returns the page with the given topic.
func Find(topic string) (page Page, exists bool) {
	for _, p := range allPages() {
		if p.Topic == topic {
			return p, true
		}
	}
	return Page{}, false
}

// FindAlert returns the section of the page incidents about an alert, as a page of its own.
func FindAlert(name string) (section Page, exists bool) {
	page, _ := Find("incidents")
	heading := "\n## " + name + ": "
	from := strings.Index(page.text, heading)
	if from < 0 || strings.ContainsAny(name, "\n: ") {
		return Page{}, false
	}
	text, _, hasNext := strings.Cut(page.text[from+len("\n## "):], "\n## ")
	if hasNext {
		text += "\n"
	}
	page.text = "## " + text
	page.Title, page.Summary = readHead(page.text)
	return page, true
}

// readPages returns the pages in an embedded folder.
func readPages(folder string, files embed.FS, order []string) []Page {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // an embedded folder can always be read
	}
	var pages []Page
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			panic(err) // an embedded file can always be read
		}
		p := Page{Topic: strings.TrimSuffix(entry.Name(), ".md"), file: path.Join(folder, entry.Name()), text: string(text)}
		p.Title, p.Summary = readHead(p.text)
		pages = append(pages, p)
	}
	position := func(p Page) int {
		if i := slices.Index(order, p.Topic); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(pages, func(a, b Page) int { return cmp.Compare(position(a), position(b)) })
	return pages
}

// readHead returns the first heading of a Markdown text, and the first paragraph below it.
func readHead(text string) (title, summary string) {
	title, rest, _ := strings.Cut(text, "\n")
	paragraph, _, _ := strings.Cut(strings.TrimLeft(rest, "\n"), "\n\n")
	return strings.TrimSpace(strings.TrimLeft(title, "#")), strings.Join(strings.Fields(paragraph), " ")
}
