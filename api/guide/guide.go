// Package guide has the pages for programmers of clients of a hub. Package docs
// shows them, on a terminal and at /docs/.
//
// A page is a Markdown file of this folder. Its name is its topic, its first
// heading is its title, and its first paragraph says what it is about.
package guide

import "embed"

// Pages holds every Markdown file of this folder.
//
//go:embed *.md
var Pages embed.FS

// Order lists the topics in the order in which a reader needs them. Other pages
// come after these.
var Order = []string{"actors", "domains", "receivers", "webhook-broker", "watching", "object-ledger", "http", "errors", "glossary"}
