// Package contentrequest asks domains over Service Bus for the content of bundles. Its
// [Requests] implement hub.Requester. A node creates them, so the package is not internal. The
// comment of Requests describes requests, replies and their sessions. Connections and the
// classes of errors are those of internal/busclient.
//
// What a failure leaves behind: no state is lost when a node dies. The next Peek repeats the
// request, for the same bundle under the same id. A late reply stays in a session that no
// receiver opens, until it expires.
package contentrequest
