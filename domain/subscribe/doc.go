// Package subscribe creates, changes and deletes subscriptions. A subscription determines which
// messages of a topic are delivered to a receiver, and how the receiver is called.
//
// A subscription is created in two steps: first its definition is stored, then its cursor at the
// end of the stream. After a crash between these steps, the subscription has no cursor, and is not
// served until its owner repeats the request.
//
// Secrets and header values are encrypted with a [Keyring] before they are stored. A [Service]
// never returns them, except that Rotate returns a secret that it has generated.
package subscribe
