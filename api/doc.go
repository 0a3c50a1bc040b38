// Package api is the HTTP edge of the message hub: it decodes what domains,
// actors and operators send, calls package hub, and encodes the answer. It decides
// nothing about events or bundles.
//
// Read [Server.routes] first, the page of all routes. A request passes
//
//	identify ─▶ observe ─▶ recoverPanics ─▶ deadline ─▶ refuseOverLimit ─▶ localOnly
//	         ─▶ route ─▶ authorize ─▶ actor or operator ─▶ handler
//
// so that whatever happens further in, the answer carries a request id, the log
// has one line, the metrics count it, a panic is a 500, and nothing lasts for
// ever. Each of these is one small file; each resource is one file; what a
// failure looks like from outside stands in one table, in problem.go.
//
// The JSON form of an event is that of package eventjson, which the Service Bus edge
// reads as well.
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
// writes lines of its answer while it runs.
//
// A client also has to move Limits.MinRate bytes a second, on average over the
// deadline when it reads and over a third of it when it sends (throughput.go).
//
// # Slow clients
//
// No client holds up others by being slow. A request holds a store slot while it
// reads the store, never while its client takes what was read (storeslot.go). The
// memory that it needs while its client sends or reads comes from a pool with a share
// for each address or actor, and a pool of its own for what is small; while a request
// waits for memory, clients that stand still are cut off (memorypool.go). Connections
// are bounded by the server, which says with Options.OverLimit when only probes are
// to be answered (overlimit.go).
//
// # Who asks
//
// With Options.Identity, a token says who sends a request: package identity verifies it, and
// authorize (rights.go) refuses senders without a role that the table of rights has for the
// route. Handlers use the principal that authorize found. Without Options.Identity, X-Actor-Id
// and the token of the operators identify the sender.
//
// Actors are identified in actor.go (requireActor), operators in operator.go
// (requireOperator; isOperator compares the token), and nowhere else. Producers, consumers and those
// of a channel show tokens of the broker, which domain/broker compares. localOnly (local.go) prevents DNS rebinding and
// refuses requests that a proxy has passed on. An address with too many failed logins
// of operators is refused for a while (failed_logins.go).
//
// # Half a body is no body
//
// A failure before the first byte of a body is a problem document. After that
// there is no honest status left, so the connection is torn down: a client sees
// the body cut short, never a short body that looks whole.
//
// # A body in parts
//
// [hub.Body] can be read from anywhere, and its length and tag are known before it is read, so
// net/http's ServeContent does ranges and conditions (download.go). The code between the two
// sends the header with the first byte, and replaces ServeContent's own errors by a problem.
// Compressed bodies have a tag of their own and no ranges. ranges.go bounds what a set of
// ranges costs: a request reads a body at most once, in ascending order.
//
// A Peek with a Range answers about the bundle that it would have answered with anyway, which
// may be the next one: a client that resumes a download names the bundle with If-Range or
// If-Match, or requests it by its id (bundle.go).
//
// # The broker
//
// The routes under /broker are those of package api/broker, which knows the Server as its host;
// broker.go has what it needs, and turns its errors into problems of the one table.
//
// # The original
//
// The routes under /api are those of the hub that this one replaces. They read requests
// (original.go, original_words.go) and return errors (original_error.go) as that hub did; all
// the rest is shared. Its bugs are not repeated; ORIGINAL.md lists them.
//
// # The document
//
// openapi.yaml describes every route, header, status and problem. A test
// compares it with the routes, and validates every exchange of the other tests
// against it.
package api
