// Package server serves AMQP 1.0 connections. It implements sessions, links, credit and
// settlement. An Application decides which links exist, and what a message means.
//
//	Serve ─▶ handshake ─▶ read frames ─▶ session ─▶ link ─▶ Application
//	            SASL          │                              │
//	                          └── outbox ◀── frames ◀────────┘
//
// A connection has two goroutines: one reads and decides, one writes. Frames are appended to
// the outbox, which never blocks, so a peer that does not read cannot block the reader. The
// outbox is bounded: while it is full, links have no room to send, and reading stops. A peer
// that does not read for too long is disconnected.
//
// What it promises an Application:
//
//   - Its methods are called without any lock held, in the order of the frames that caused
//     them, and may call links from any goroutine. Only Sender.Ready may be called from two
//     goroutines at the same time.
//   - The end of a Link is reported exactly once, whatever its cause.
//   - A delivery to the peer is settled in the mode that the peer chose; a message from the
//     peer is settled by this side first, as Service Bus does in any mode.
//   - A message that is larger than the limit of its link is rejected before the link is
//     detached, so that the peer does not wait for its outcome.
//
// What it leaves to others: listening, TLS and WebSockets (it takes a net.Conn), and
// authorization.
//
// A new connection is anonymous until the Application calls Conn.Authorize: its frames, links,
// sessions and buffers are small, and it ends after a timeout. Totals limits the sum over
// connections: links and sessions beyond the limit are refused, and while memory is scarce each
// connection may buffer less. Of a link that was refused or detached by this side, only the
// handle stays until the peer detaches it; a peer that leaves too many handles loses the
// connection.
//
// A violation of the protocol ends the smallest unit that contains it: link, session, or
// connection; other connections are not affected. When Serve returns, all goroutines and links
// of the connection have ended.
package server
