// Package subscribe has the use cases of subscriptions: an owner defines which messages of a
// topic a receiver gets, and how the receiver is called.
//
// A subscription is created in two steps: its definition, and its cursor at the end of the
// stream. A crash between them leaves a subscription without a cursor, which is not served
// until its owner repeats the request.
//
// Secrets and headers are sealed before they are stored. No result of this package includes
// them, except that a rotation returns the secret that the hub has generated.
package subscribe
