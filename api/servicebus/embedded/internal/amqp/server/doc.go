// Package server serves AMQP 1.0 connections. It implements sessions, links, credit and
// settlement. An Application accepts links, and processes messages.
//
//	Serve ─▶ handshake ─▶ read frames ─▶ session ─▶ link ─▶ Application
//	            SASL          │                              │
//	                          └── outbox ◀── frames ◀────────┘
//
// A connection has two goroutines: one reads and handles frames, one writes. The reader appends
// frames to the outbox, which never blocks, so a peer that does not read cannot block the reader.
// The outbox is limited: while it is full, links have no room to send, and reading stops. A peer
// that does not read for StallTimeout is disconnected.
//
// What it promises an Application:
//
//   - The methods of the Application are called without locks, in the order of the frames that
//     caused the calls. Links may be used from any goroutine. Only Sender.Ready may be called
//     from two goroutines at the same time.
//   - The end of a Link is reported exactly once, whatever its cause.
//   - A delivery to the peer is settled in the mode that the peer chose. This side settles a
//     message from the peer first, in any mode, as Service Bus does.
//   - A message that is larger than the limit of its link is rejected before the link is
//     detached, so that the peer does not wait for its outcome.
//
// The package does not listen, and does not implement TLS, WebSockets or authorization. Its input
// is a net.Conn.
//
// A new connection is anonymous until the Application calls Conn.Authorize. An anonymous
// connection has low limits for frames, links, sessions and buffers, and ends after a timeout.
// Totals limits the sum over connections: links and sessions beyond the limit are refused, and
// while memory is scarce each connection may buffer less. After this side has refused or detached
// a link, the server stores only its handle until the peer detaches the link, too. A peer with too
// many of these handles loses the connection.
//
// A violation of the protocol ends the smallest unit that contains it: link, session, or
// connection; other connections are not affected. When Serve returns, all goroutines and links
// of the connection have ended.
package server
