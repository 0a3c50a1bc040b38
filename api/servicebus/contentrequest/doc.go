// Package contentrequest asks domains over Service Bus for the content of bundles. Its
// [Requests] are the hub.Requester of a node, which makes them; that is why the package
// is not internal. What a request, a reply and their sessions look like says the comment
// of Requests; connections and the meaning of errors are those of internal/busclient.
//
// What a failure leaves behind: nothing is kept that the death of a node could lose. The
// next Peek asks again, for the same bundle under the same id, and a reply that comes too
// late stays in a session that no receiver opens, until it expires.
package contentrequest
