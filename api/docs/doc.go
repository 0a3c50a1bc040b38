// Package docs shows the pages of the handbook and of the guide: as text for a terminal, and as
// HTML for a browser.
//
// The pages are Markdown, so that they can be read in the tree as well. [Pages] returns all of
// them. A [Site] has a part of them as HTML, rendered once, on the server: without scripts, and
// without anything from another host. A link to what the site does not have becomes text.
//
// The pages use a part of Markdown: headings, paragraphs, fenced code, lists, tables, code,
// emphasis and links. A library for all of it would add 650 KB to the command. The tests render
// each page with such a library as well, and compare.
//
// Who may see which page is decided by package api.
package docs
