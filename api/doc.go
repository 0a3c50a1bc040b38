// Package api is the HTTP edge of the message hub: it decodes what domains,
// actors and operators send, calls package hub, and encodes the response. It decides
// nothing about events or bundles.
//
// Read [Server.routes] first, which has all routes. A request passes
//
//	identify ─▶ observe ─▶ recoverPanics ─▶ deadline ─▶ refuseOverLimit ─▶ localOnly
//	         ─▶ route ─▶ authorize ─▶ actor or operator ─▶ handler
//
// So each response has a request id, each request has one line in the log and is counted by the
// metrics, a panic becomes a 500, and the time is limited. Each step and each resource has a small
// file. The table in problem.go maps each kind of error to a response.
//
// Package eventjson defines the JSON form of an event. The Service Bus edge uses it, too.
//
// # Time
//
// A request has one deadline (Options.Deadline, 30 s) for reading its body and for the work.
// When the work is done and a body is being streamed, each piece that the client reads restarts
// the deadline, up to 20 times its length in total. So a large bundle can be sent over a slow
// connection, and a client that stops reading is disconnected. [Harden] explains why the
// timeouts of http.Server cannot do this.
//
// A Peek that waits for data is parked (poll.go), so that 10,000 of them take little
// memory; the wait is added to its deadline. A check has no deadline, because it
// writes lines of its response while it runs.
//
// A client must also transfer Limits.MinRate bytes per second: on average over the
// deadline when it reads, and over a third of the deadline when it sends
// (throughput.go).
//
// # Slow clients
//
// A slow client does not delay others. A request holds a store slot while it reads
// the store, but not while its client reads the response (storeslot.go). The memory
// that a request holds while its client sends or reads comes from a pool, of which
// each address or actor gets a share; small requests have a separate pool. While a
// request waits for memory, clients that make no progress are cut off
// (memorypool.go). The server limits connections, and Options.OverLimit reports when
// only probes are answered (overlimit.go).
//
// # Authentication
//
// With Options.Identity, a token says who sends a request: package identity verifies it, and
// authorize (rights.go) refuses senders without a role that the table of rights has for the
// route. Handlers use the principal that authorize found. Without Options.Identity, X-Actor-Id
// and the token of the operators identify the sender.
//
// Actors are identified in actor.go (requireActor), operators in operator.go
// (requireOperator; isOperator compares the token), and nowhere else. Producers,
// consumers and channels of the broker have tokens that domain/broker compares.
// localOnly (local.go) prevents DNS rebinding and refuses requests that a proxy has
// passed on. An address with too many failed logins of operators is refused for a
// while (failed_logins.go).
//
// # Failures within a body
//
// If a request fails before the first byte of the body was sent, the response is a problem
// document. After the first byte, the status cannot be changed, so the connection is closed: the
// client sees that the body is incomplete.
//
// # A body in parts
//
// [hub.Body] can be read from anywhere, and its length and tag are known before it is read, so
// net/http's ServeContent does ranges and conditions (download.go). Type download is
// its ResponseWriter: it sends the header with the first byte, and replaces the errors of
// ServeContent by problems.
// Compressed bodies have a separate tag and no ranges. ranges.go bounds what a set of
// ranges costs: a request reads a body at most once, in ascending order.
//
// A Range does not change which bundle a Peek returns, and this may be the next bundle. So a client
// that resumes a download names the bundle with If-Range or If-Match, or requests the bundle by
// its id (bundle.go).
//
// # The broker
//
// Package api/broker has the routes under /broker. broker.go implements its interface Host, and
// turns errors of the broker into problems of the table.
//
// # The original
//
// The routes under /api are those of the original, the hub that this hub replaces. They read
// requests (original.go, original_words.go) and return errors (original_error.go) like the
// original. All other code is shared with the routes under /v1. ORIGINAL.md lists the bugs of the
// original, which this hub does not repeat.
//
// # The document
//
// openapi.yaml describes every route, header, status and problem. A test
// compares it with the routes, and validates every exchange of the other tests
// against it.
package api
