// Package webhook calls receivers over HTTP.
//
// A [Client] makes all calls, on one path:
//
//	Delivery ─▶ body, headers, signatures ─▶ look-up ─▶ guard ─▶ dial ─▶ guard ─▶ answer, up to 64 KB
//	            └─────────────────────── one deadline for all of it ──────────────────────────────┘
//
// A receiver is any host that a user names, so it may be hostile:
//
//   - A [Guard] decides about every address that is dialed, after its name was resolved and
//     again when the socket is about to connect. So the hub does not call a name that passed
//     [Client.CheckURL] and later has an address that may not be called (DNS rebinding). Only calls
//     to watches follow redirects, and their targets are checked in the same way. A proxy in the
//     environment is not used.
//   - Only the first bytes of a response are stored, without decompression. A response that does not
//     end before the deadline is a failed attempt.
//   - The result of a failed call has a reason, which says what the receiver's operator can do. The
//     reason repeats neither the URL nor the response, because both may contain secrets.
//
// A receiver recognizes the hub by signatures: those of Standard Webhooks (v1 with a shared secret,
// v1a with a key pair; several signatures while a secret is replaced) and, for a receiver with an HMAC
// key, a signature of date and digest in the Authorization header. The id of a
// delivery is the same in each attempt, so that a receiver can drop repetitions.
package webhook
