// Package identity finds out who sends a request: it verifies the token or the client certificate
// that the request shows, and returns a [Principal]. It does not decide what a principal may do;
// package api has the table of rights.
//
//	token ─▶ memory of verified tokens ─▶ claims ─┐
//	              │ not there                     ├─▶ registry of actors ─▶ Principal
//	              └─▶ keys of the issuer          │
//	client certificate ───────────────────────────┘
//
// go-oidc verifies tokens. Three of its properties do not fit a hub that strangers reach, so the
// keys and the memory are ours:
//
//   - Keys are fetched at most once in 30 seconds, however many tokens name unknown keys, and by one
//     request at a time. While the issuer cannot be reached, its keys are used for up to 24 hours.
//   - A token may begin at most 60 seconds after now. It must not have expired.
//   - A verified token is remembered by its SHA-256 until it expires, because a verification costs
//     a tenth of a millisecond. At most 10,000 tokens are remembered. They are forgotten once a key
//     of their issuer is withdrawn.
//
// An [Error] says what is wrong with a request in fixed words. No text of a token is in an error, and
// nothing here logs one.
package identity
