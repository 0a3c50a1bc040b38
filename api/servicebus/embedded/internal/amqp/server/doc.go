// Package server is the serving end of AMQP 1.0 connections. It knows sessions,
// links, credit and settlement, and nothing of what stands behind an address:
// an Application says which links there are, and what a message means.
//
//	Serve ─▶ handshake ─▶ read frames ─▶ session ─▶ link ─▶ Application
//	            SASL          │                              │
//	                          └── outbox ◀── frames ◀────────┘
//
// A connection has two goroutines: one reads and decides, one writes. Frames to
// be written are appended to the outbox, which never blocks; so no state is
// ever held up by a peer that does not read. The outbox is bounded in turn:
// when it is full, links get no room to send, and no more is read, until the
// peer has taken some. A peer that takes nothing for too long is cut off.
//
// What it promises an Application:
//
//   - Its methods are called without any lock held, in the order of the frames
//     that caused them, and may call back into links from any goroutine. Only
//     Sender.Ready may come from two goroutines at once.
//   - A Link is told to be gone exactly once, however it ends.
//   - A delivery that was settled is answered in the mode that the peer chose; a
//     message from the peer is settled at once, as Service Bus does in any mode.
//
// What it leaves to others: listening, TLS and WebSockets (a net.Conn comes
// in), and who may do what.
//
// A new connection is anonymous until the Application calls Conn.Authorize: its
// frames, links, sessions and buffers are small, and it ends after a timeout.
// Totals limits what connections use together: links and sessions beyond them
// are refused, and while memory is scarce each connection buffers less. A link
// that was refused, or that this side has ended, leaves only its handle until the
// peer detaches it; a peer that leaves too many loses the connection.
//
// A peer that breaks the protocol loses the smallest thing that contains the
// fault: link, session, or connection; other connections notice nothing. When
// Serve returns, no goroutine of the connection is left, and every link of it
// is gone.
package server
