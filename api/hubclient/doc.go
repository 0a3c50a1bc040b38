// Package hubclient is a client of the hub's HTTP API for actors and domains. It imports only the
// standard library.
//
//	client, err := hubclient.New(hubclient.Options{URL: "https://hub.example.org", Token: token})
//
// A domain announces data:
//
//	announced, err := client.Announce(ctx, []hubclient.Event{{ID: "…", Recipient: "5790001330552", …}})
//
// An actor fetches the data in bundles. [Client.Consume] fetches bundles until its context ends:
//
//	err := client.Consume(ctx, "5790001330552", func(ctx context.Context, b *hubclient.Bundle) error {
//		return store(ctx, b.ID, b) // b is an io.Reader
//	})
//
// [Client.Peek], [Bundle.Dequeue], [Client.Download] and [Client.Queues] send single requests.
//
// # What it promises
//
//   - The body of a bundle is streamed, with only a few kilobytes of it in memory.
//   - If the connection is lost, the client fetches the rest of the same bundle. If a body ends
//     early, is too long, or changes, reading the body fails.
//   - Consume dequeues a bundle only if the handler returned nil and the whole body was received.
//     Otherwise the bundle is delivered again. A handler that gets a bundle more than once can
//     recognize it by the ids of the events.
//   - A request that fails temporarily (status 429, 502, 503 or 504, no connection, or no
//     response) is repeated until [Options.Budget] is exhausted. The pauses grow, vary, and are
//     at least as long as the Retry-After from the hub. All requests of this package may be
//     repeated safely.
//   - Pauses and time limits are measured by a monotonic clock ([Clock]).
//   - The size of each response and the time to wait for it are limited.
//
// # Tokens
//
// [Options.Token] returns the token for each request. It should cache and renew tokens. The client
// does not follow redirects, because requests contain tokens. No error contains a token.
//
// # Failures
//
// If the hub refuses a request, the call fails with a [*Problem]. After any other error, the hub
// may have executed the request. A bundle that was not dequeued stays open, and the next Peek
// returns it again.
//
// # Examples
//
// Package cmd/hubtest has examples that run against a hub: send, peek, a long poll, a resumed
// download, dequeue, a subscription, and a query of objects.
package hubclient
