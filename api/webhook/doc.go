// Package webhook calls receivers over HTTP.
//
// A [Client] makes all calls, in these steps:
//
//	Delivery ─▶ body, headers, signatures ─▶ look-up ─▶ guard ─▶ dial ─▶ guard ─▶ answer, up to 64 KB
//	            └─────────────────────── one deadline for all of it ──────────────────────────────┘
//
// A receiver is any host that a user has chosen, so it may be hostile:
//
//   - A [Guard] checks each address twice: after the name was resolved, and when the socket is
//     about to connect. So the hub does not call a name that passed [Client.CheckURL] and later
//     resolves to a forbidden address (DNS rebinding). Only calls to watches follow redirects,
//     whose targets are checked in the same way. A proxy in the environment is not used.
//   - Only the first bytes of a response are stored, without decompression. A response that does
//     not end before the deadline is a failed attempt.
//   - The result of a failed call contains a reason, which tells the operator of the receiver
//     what to do. The reason does not contain the URL or the response, because both may contain
//     secrets.
//
// A receiver recognizes the hub by signatures of Standard Webhooks: v1 with a shared secret, or v1a
// with a key pair. A delivery has several signatures while a secret is replaced. For a receiver with
// an HMAC key, the Authorization header also contains a signature of date and digest. The id of a
// delivery is the same in each attempt, so a receiver can recognize repetitions.
package webhook
