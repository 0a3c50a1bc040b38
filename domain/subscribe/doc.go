// Package subscribe creates, changes and deletes subscriptions. A subscription defines which
// messages of a topic are delivered to a receiver, and how the receiver is called.
//
// A subscription is created in two steps: first its definition is stored, then its cursor at the
// end of the stream. A crash between the steps leaves a subscription without a cursor. It is not
// served until its owner repeats the request.
//
// Secrets and the values of headers are sealed, that is, encrypted with a [Keyring], before they are
// stored. A [Service] never returns them, except that Rotate returns a secret that it generated.
package subscribe
