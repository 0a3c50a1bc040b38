// Package console serves the pages on which operators inspect a hub and give orders, at /console/
// on the listener for operators.
//
// It renders HTML on the server. Each page is one file with its handlers and its HTML; pages.go
// lists all pages. A page works without scripts, except for charts, beside which there is a table
// with the same values. Pages call the use cases of Options directly, and decide nothing about
// events, bundles or orders.
//
// # Promises
//
// A request reaches a page only if serve (serve.go) has identified the operator, and the operator
// has the role that the page requires. A POST must contain the token of its session, and must not
// come from another site. An order requires a reason and a typed name (confirm.go). It is refused
// if the state on the page has changed. Package journal records the orders for receivers and jobs,
// because their use cases store no records. Pages about receivers and jobs contain no payload, key,
// header value, or path and query of a callback.
//
// A session is an encrypted cookie (session.go). The server stores no sessions, so any node that
// derives the same key accepts the cookie. The token of an operator is looked up for each request,
// so removing a token ends its sessions. A form that is submitted after its session has ended is
// not executed; its text is stored in cookies, and shown again after signing in (kept_form.go).
//
// Package gomponents escapes all texts. Names are isolated by bdi, so that right-to-left text does
// not reorder the page. The Content-Security-Policy permits only the scripts and styles of assets.
// html/template is not used: it calls methods by name, so the linker could not remove unused
// methods, and the program would grow by 8.3 MB.
//
// # Other packages
//
// Package api mounts the pages and implements [Host]: it compares tokens, limits failed logins,
// classifies errors, logs and counts. Package identity verifies the tokens of an issuer. A check
// that was started on a page ends when [Console.Run] ends. Its findings are lost when the process
// ends.
package console
