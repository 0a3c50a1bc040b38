// Package identity authenticates the sender of a request: it verifies the token or the client certificate
// that the request shows, and returns a [Principal]. It does not decide what a principal may do;
// package api has the table of rights.
//
//	token ─▶ cache of verified tokens  ─▶ claims ─┐
//	              │ not there                     ├─▶ registry of actors ─▶ Principal
//	              └─▶ keys of the issuer          │
//	client certificate ───────────────────────────┘
//
// go-oidc verifies tokens. This package replaces three parts of it, because anyone can send
// requests to a hub:
//
//   - Keys are fetched at most once in 30 seconds, however many tokens name unknown keys, and by one
//     request at a time. While the issuer cannot be reached, its keys are used for up to 24 hours.
//   - A token may begin at most 60 seconds after now. It must not have expired.
//   - A verified token is remembered by its SHA-256 until it expires, because a verification costs
//     a tenth of a millisecond. At most 10,000 tokens are remembered. They are forgotten once a key
//     of their issuer is withdrawn.
//
// The text of an [Error] does not depend on the request, so no error contains a part of a token. The
// package logs nothing of a token either.
package identity
