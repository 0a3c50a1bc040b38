// Package hubclient is a client of the hub's HTTP API for actors and domains. It imports only the
// standard library.
//
//	client, err := hubclient.New(hubclient.Options{URL: "https://hub.example.org", Token: token})
//
// A domain announces data:
//
//	announced, err := client.Announce(ctx, []hubclient.Event{{ID: "…", Recipient: "5790001330552", …}})
//
// An actor fetches the data bundle by bundle. [Client.Consume] does that until its context ends:
//
//	err := client.Consume(ctx, "5790001330552", func(ctx context.Context, b *hubclient.Bundle) error {
//		return store(ctx, b.ID, b) // b is an io.Reader
//	})
//
// [Client.Peek], [Bundle.Dequeue], [Client.Download] and [Client.Queues] are its parts.
//
// # What it promises
//
//   - A bundle is streamed. A client holds a few kilobytes of it, however large it is.
//   - If the connection is lost, the rest of the same bundle is fetched. If a body ends early, is too
//     long, or changes, reading it fails.
//   - Consume dequeues a bundle only if its handler returned nil and the body was received to its
//     end. Otherwise the bundle is delivered again: a handler may get a bundle more than once, and
//     recognizes it by the ids of its events.
//   - A request that fails temporarily (429, 502, 503, 504, no connection, no answer)
//     is repeated until [Options.Budget] is spent. The pauses grow, vary, and are at least as long
//     as the Retry-After of the hub. All requests of this package may be repeated safely.
//   - Pauses and time limits are measured by a monotonic clock ([Clock]).
//   - The size of each answer and the time to wait for it are limited.
//
// # Tokens
//
// Tokens come from [Options.Token], which is called for each request, and should cache and renew them.
// Redirects are not followed, because requests carry tokens. No error contains a token.
//
// # Failures
//
// A request that the hub has refused fails with a [*Problem]. If a request fails otherwise, the hub may
// have executed it. A bundle that was not dequeued stays open: the next Peek returns it again.
//
// # Examples
//
// Package cmd/hubtest has examples that run against a hub: send, peek, a long poll, a resumed download, dequeue, a
// subscription, and a query of objects.
package hubclient
