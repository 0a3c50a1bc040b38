// Package webhook calls receivers over HTTP.
//
// Every call is made by a [Client], on one path:
//
//	Delivery ─▶ body, headers, signatures ─▶ look-up ─▶ guard ─▶ dial ─▶ guard ─▶ answer, up to 64 KB
//	            └─────────────────────── one deadline for all of it ──────────────────────────────┘
//
// A receiver is any host that a user names, so it may be hostile:
//
//   - A [Guard] decides about every address that is dialed, after its name was resolved and
//     again when the socket is about to connect. A name that passed [Client.CheckURL] and has
//     another address now (DNS rebinding) is not called. Only calls to watches follow redirects, to
//     targets that are checked in the same way. No
//     proxy is taken from the environment.
//   - Of an answer, only the first bytes are kept, and they are not decompressed. An answer
//     that does not end before the deadline is a failed attempt.
//   - A failed call is an answer with a reason that tells the receiver's operator what to do.
//     The reason repeats neither the URL nor the answer, because both may hold secrets.
//
// A receiver knows the hub by signatures. They are those of Standard Webhooks (v1 with a
// shared secret, v1a with a key pair; several while a secret is replaced) and, for a receiver
// with an HMAC key, a signature of date and digest in the Authorization header. The id of a
// delivery is the same in each attempt, so that a receiver can drop repetitions.
package webhook
