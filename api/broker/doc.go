// Package broker is the HTTP API of the webhook broker: the routes under /broker, as the
// specification names them. It decodes requests, calls the use cases of domain/broker, and encodes
// their results. It decides nothing about messages and consumers.
//
// Read [Mount] first, which has all routes. The package is a part of the server of package api,
// which is its [Host]: it identifies and logs requests, limits their time and memory, and answers
// errors as problems. Errors of this package that have no kind of the domain are in errors.go.
//
// # Credentials
//
// A request shows its credentials in headers: X-Broker-Admin-Token, or Authorization: Bearer,
// for operators; X-Broker-Channel-Token, X-Broker-Producer-ID and X-Broker-Producer-Token for
// producers; X-Broker-Consumer-Token for consumers. credentials.go reads them, and the Host
// compares the token of operators, by the same rules as for other routes.
// A request with a wrong token of operators is refused, even if its other credentials are
// valid.
//
// # Conditions
//
// A party has a version, in its ETag, and the time of its last change, in Last-Modified. A PUT
// may require a version (If-Match) or a time of the last change (If-Unmodified-Since). Times have whole seconds, and two changes are never in the same second.
//
// # Payloads
//
// A message in an answer has its payload as text, if that is UTF-8 without control characters, and
// in Base64 otherwise, so that its JSON is never much larger than the payload. Consumers get the
// payload as it was sent, without JSON around it.
package broker
