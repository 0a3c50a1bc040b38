// Package docs returns the pages of the handbook and of the guide, as text for a terminal and as
// HTML for a browser.
//
// The pages are Markdown, so that they can also be read in the tree. [Pages] returns all pages. A
// [Site] serves some of the pages as HTML. Each page is rendered once, on the server. It contains
// no scripts and loads nothing from another host. A link to a target outside the site is rendered
// as text.
//
// The pages use only a part of Markdown: headings, paragraphs, fenced code, lists, tables, code,
// emphasis and links. A library for all of Markdown would add 650 KB to the command. The tests
// also render each page with such a library, and compare the results.
//
// Package api decides which clients may read which pages.
package docs
