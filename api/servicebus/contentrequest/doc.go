// Package contentrequest requests the content of bundles from domains over Service Bus. Its type
// [Requests] implements hub.Requester, and its comment describes requests, replies and their
// sessions. The package is not internal, because package node creates the Requests. Package
// internal/busclient manages the connections and classifies errors.
//
// The death of a node loses no state: the next Peek repeats the request for the same bundle with
// the same idempotency id. A late reply remains in its session, which no receiver opens, until the
// reply expires.
package contentrequest
