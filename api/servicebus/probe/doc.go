// Package probe tests whether a credential may receive from queues and send to them, without a message.
//
// A right is tested by opening a link: the bus refuses that if the credential lacks the right, if the
// queue does not exist, or if the link has sessions and the queue has none, or the other way round. No
// message is sent, received or locked. In a queue with sessions the link is one to a session that no
// message has; it is gone once the link is closed, and with the connection if the program dies before.
package probe
