// Package contentrequest requests the content of bundles from domains over
// Service Bus. Its [Requests] implement hub.Requester. A node creates them, so
// the package is not internal. The comment of Requests describes requests,
// replies and their sessions. Package internal/busclient has the connections
// and the classes of errors.
//
// No state is lost when a node dies: the next Peek repeats the request, for the
// same bundle with the same id. A late reply stays in a session that no
// receiver opens, until it expires.
package contentrequest
