// Package probe tests whether a credential may receive from queues and send to them. It sends,
// receives and locks no message.
//
// It tests a right by opening a link. The bus refuses the link if the credential lacks the right,
// or if the queue does not exist. It also refuses a link without a session to a queue with
// sessions, and the reverse. In a queue with sessions, the link is opened to an unused session,
// which is released when the link is closed or when the program ends.
package probe
