// Package probe tests whether a credential has the right to receive from queues and to send to them.
// It sends, receives and locks no message.
//
// A right is tested by opening a link. The bus refuses the link if the credential lacks the right,
// if the queue does not exist, or if only one of the link and the queue has sessions. In a queue with
// sessions, the link is opened to a session without messages. The session is released when the link
// is closed, or when the connection ends because the program dies.
package probe
