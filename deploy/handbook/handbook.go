// Package handbook holds the pages for operators of a hub: how to install it, size it, watch
// it, and what to do in an incident. Package docs shows them, on a terminal and at /docs/.
//
// A page is a Markdown file of this folder. Its name is its topic, its first heading is its
// title, and its first paragraph says what it is about.
package handbook

import "embed"

// Pages holds every Markdown file of this folder.
//
//go:embed *.md
var Pages embed.FS

// Order lists the topics in the order in which a reader needs them. Pages that Order does not name
// follow at the end.
var Order = []string{
	"install", "configuration", "azure", "sizing", "performance", "security", "diagnosis", "console", "monitoring", "traces",
	"incidents", "messages", "repair", "backups", "upgrading", "limits", "cosmos-emulator", "servicebus-emulator", "blob-emulator",
}
