// Package busclient is the layer over Microsoft's Service Bus client, azservicebus,
// that all packages of this repository use: shared connections, senders, and a
// classification of errors. It does not depend on the messages and rules of the hub,
// so that package domainclient can use it without the hub.
//
//	Connection   a client that is opened when it is first needed, counted by use,
//	             retired when it fails, and closed by its last user
//	WithSender   shares the links for sending, and replaces a link that cannot be restored
//	Classify     classifies an error, and returns what a caller can do about it
//	ReceiveOne   receives a message, and recovers a panic of the client
//	TaskGroup    runs work that outlasts the call that started it
//
// A failed client is replaced and not repaired: the next user gets a new client, perhaps with
// another key, and the failed client is closed when its last user releases it. Each call to the
// client has a separate timeout, and does not end with the context of the caller: a call that is
// cancelled while it opens a link breaks the connection for all users, and a message whose
// settlement is cancelled is delivered again.
package busclient
