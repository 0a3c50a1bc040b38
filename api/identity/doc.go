// Package identity authenticates the sender of a request: it verifies the token or the client
// certificate of the request, and returns a [Principal]. It does not decide what a principal may
// do; package api defines the rights.
//
//	token ─▶ cache of verified tokens  ─▶ claims ─┐
//	              │ not there                     ├─▶ registry of actors ─▶ Principal
//	              └─▶ keys of the issuer          │
//	client certificate ───────────────────────────┘
//
// The library go-oidc verifies tokens. Anyone can send requests to a hub, so this package replaces
// three parts of the library:
//
//   - Keys are fetched at most once in 30 seconds and by one request at a time, even if many
//     tokens name unknown keys. While the issuer cannot be reached, its keys are used for up to
//     24 hours.
//   - The start of a token's validity may be at most 60 seconds in the future. An expired token
//     is refused.
//   - A verified token is cached by its SHA-256 until it expires, because a verification takes a
//     tenth of a millisecond. The cache contains at most 10,000 tokens. When an issuer withdraws
//     a key, the cached tokens of that issuer are verified again.
//
// The text of an [Error] does not depend on the request, so no error contains a part of a token.
// The package logs no part of a token either.
package identity
