// Package hubclient is the hub as actors and domains see it over HTTP. It needs only the
// standard library, and a program that imports it gets no hub along with it.
//
//	client, err := hubclient.New(hubclient.Options{URL: "https://hub.example.org", Token: token})
//
// A domain announces data:
//
//	announced, err := client.Announce(ctx, []hubclient.Event{{ID: "…", Recipient: "5790001330552", …}})
//
// An actor fetches it bundle by bundle. [Client.Consume] does all of that until its context ends:
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
//   - If the connection breaks, the rest of the body is fetched, of that bundle and no other. A body
//     that ends early, is too long, or changes is an error and never a short bundle.
//   - Consume dequeues a bundle only if its handler returned nil and the body was received to its
//     end. Otherwise the bundle is delivered again: a handler may get a bundle more than once, and
//     recognizes it by the ids of its events.
//   - A request that fails for a reason that may pass (429, 502, 503, 504, no connection, no answer)
//     is repeated until [Options.Budget] is spent. The pauses grow, vary, and are at least as long
//     as the Retry-After of the hub. All requests of this package may be repeated safely.
//   - Pauses and limits of time are measured by a clock that never jumps ([Clock]).
//   - Everything that is read has a limit, and an answer that does not arrive has one, too.
//
// # What it leaves to others
//
// Tokens come from [Options.Token], which renews and caches them; it is asked for each request.
// Redirects are not followed, because requests carry tokens. No error has a token.
//
// # What a failure leaves behind
//
// A request that the hub has refused fails with a [*Problem]. If a request fails otherwise, the hub may
// have carried it out. A bundle that was not dequeued stays open: the next Peek returns it again.
//
// # Examples
//
// Package cmd/hubtest has examples that run against a hub: send, peek, a long poll, a resumed download, dequeue, a
// subscription, and a query of objects.
package hubclient
