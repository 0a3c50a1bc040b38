// Package console serves the pages by which operators see what a hub does and give orders, at
// /console/ on the listener of operators.
//
// It renders HTML on the server. Each page is one file: its handlers, its nodes and its test; pages.go
// has the table of all pages. A page works without scripts, except for charts, which have a table
// beside them. Pages call the use cases of Options directly, and decide nothing about events, bundles
// or orders.
//
// # Promises
//
// A request reaches a page only if serve (serve.go) has identified the operator, and the operator has
// the role that the page needs. A POST needs the token of its session and must not come from another site. Orders need a reason
// and the name typed again (confirm.go), and are refused if the state on the page has changed. Orders about
// receivers and jobs, whose use cases keep no records, are recorded by package journal. No page about them
// shows a payload, a key, the value of a header, or the path and query of a callback.
//
// A session is a sealed cookie (session.go): the server stores no sessions, so any node that derives
// the same key accepts the cookie. The token of an operator is looked up for each request, so the
// removal of a token ends its sessions. A form that is submitted after its session has ended is not executed; its text
// is stored in cookies, and shown again after signing in (kept_form.go).
//
// Texts are escaped by package gomponents where they are written, and names are isolated by bdi, so
// that their direction does not reorder the page. The Content-Security-Policy permits only the
// scripts and styles of assets. html/template is not used: because it calls methods by name, the
// linker could not remove unused methods, which would add 8.3 MB to the program.
//
// # Other packages
//
// Package api mounts the pages and implements [Host]: it compares tokens, limits failed logins,
// classifies errors, logs and counts. Package identity verifies the tokens of an issuer. A check that
// was started on a page ends with [Console.Run]; its findings are shown until the process ends.
package console
