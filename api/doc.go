// Package api is the HTTP interface of the message hub: it decodes what domains, actors and
// operators send, calls package hub, and encodes the response. It decides nothing about events or
// bundles.
//
// Read [Server.routes] first, which lists all routes. A request passes
//
//	identify ─▶ observe ─▶ recoverPanics ─▶ deadline ─▶ refuseOverLimit ─▶ localOnly
//	         ─▶ route ─▶ authorize ─▶ actor or operator ─▶ handler
//
// So each response has a request id, each request has one line in the log and is counted by the
// metrics, a panic becomes a 500, and the time is limited. Each step and each resource has a small
// file. The table in problem.go maps each kind of error to a response.
//
// Package eventjson defines the JSON format of an event, which the hub also accepts from Service
// Bus.
//
// # Time
//
// A request has one deadline (Options.Deadline, 30 s) for reading its body and for the work. When
// the work is done and a body is streamed, each part that the client reads restarts the deadline,
// up to 20 times its length in total. So a large bundle can be sent over a slow connection, and a
// client that stops reading is disconnected. [Harden] explains why the timeouts of http.Server
// cannot do this.
//
// A Peek that waits for data is parked (poll.go), so that 10,000 such requests take little memory.
// Its deadline is extended by the wait. A check has no deadline, because it writes lines of its
// response while it runs.
//
// A client must also transfer Limits.MinRate bytes per second: on average over the deadline when it
// reads, and over a third of the deadline when it sends (throughput.go).
//
// # Slow clients
//
// A slow client does not delay other clients. A request holds a store slot while it reads the
// store, but not while its client reads the response (storeslot.go). The memory that a request
// holds while its client sends or reads comes from a pool, of which each address or actor gets a
// share; small requests have a separate pool. While a request waits for memory, clients that make
// no progress are disconnected (memorypool.go). The server limits connections. Beyond the limit
// given by Options.OverLimit, it responds only to probes (overlimit.go).
//
// # Authentication
//
// With Options.Identity, a token identifies the sender of a request. Package identity verifies it,
// and authorize (rights.go) refuses senders who have none of the roles that the route requires.
// Handlers use the principal that authorize has found. Without Options.Identity, X-Actor-Id and the
// operator token identify the sender.
//
// Actors are identified only in actor.go (requireActor), and operators only in operator.go
// (requireOperator; isOperator compares the token). Producers, consumers and channels of the broker
// have tokens that domain/broker compares. localOnly (local.go) prevents DNS rebinding and refuses
// requests that a proxy has forwarded. An address with too many failed logins of operators is
// refused for a while (failed_logins.go).
//
// # Failures within a body
//
// If a request fails before the first byte of the body was sent, the response is a problem
// document. After the first byte, the status cannot be changed, so the connection is closed: the
// client notices that the body is incomplete.
//
// # Partial responses
//
// [hub.Body] can be read from any position, and its length and tag are known before it is read, so
// ServeContent of net/http handles ranges and conditions (download.go). The type download is its
// ResponseWriter: it sends the header with the first byte, and replaces the errors of ServeContent
// with problems.
//
// A compressed body has a different tag and no ranges. ranges.go limits the cost of several ranges:
// a request reads a body at most once, in ascending order.
//
// A Range does not change which bundle a Peek returns, and this may be the next bundle. So a client
// that resumes a download names the bundle with If-Range or If-Match, or requests the bundle by its
// id (bundle.go).
//
// # The broker
//
// Package api/broker contains the routes under /broker. broker.go implements its interface Host,
// and turns errors of the broker into problems.
//
// # The original
//
// The routes under /api are those of the original, the hub that this hub replaces. They read
// requests (original.go, original_words.go) and return errors (original_error.go) as the original
// did. They share all remaining code with the routes under /v1. ORIGINAL.md lists the bugs of the
// original that this hub does not repeat.
//
// # The OpenAPI document
//
// openapi.yaml describes every route, header, status and problem. A test compares it with the
// routes. All other tests validate their requests and responses against it.
package api
