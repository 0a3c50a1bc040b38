package docs

import (
	"path"
	"strings"
)

// resolveLink returns the page to which a link of p leads, and the heading in the link. page is nil
// if the target is not a page.
func (p *Page) resolveLink(target string) (page *Page, heading string) {
	if strings.Contains(target, "://") {
		return nil, ""
	}
	file, heading, _ := strings.Cut(target, "#")
	if file == "" {
		return p, heading
	}
	file = path.Join(path.Dir(p.file), file)
	pages := allPages()
	for i := range pages {
		if pages[i].file == file {
			return &pages[i], heading
		}
	}
	return nil, ""
}
