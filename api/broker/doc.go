// Package broker is the HTTP API of the webhook broker: the routes under /broker. It decodes
// requests, calls the use cases of domain/broker, and encodes their results. It decides nothing
// about messages and consumers.
//
// Read [Mount] first, which lists all routes. The package is a part of the server of package api,
// which is its [Host]: the Host identifies and logs requests, limits their time and memory, and
// responds to errors with problems. errors.go defines the errors that have no domain.Kind.
//
// # Credentials
//
// The headers of a request contain its credentials: X-Broker-Admin-Token, or Authorization: Bearer,
// for operators; X-Broker-Channel-Token, X-Broker-Producer-ID and X-Broker-Producer-Token for
// producers; X-Broker-Consumer-Token for consumers. credentials.go reads them. The Host compares
// the operator token, by the same rules as for other routes. A request with a wrong operator token
// is refused, even if its other credentials are valid.
//
// # Conditions
//
// The ETag of a party is its version, and Last-Modified is the time of its last change. A PUT may
// require a version (If-Match), or that the party has not changed since a time
// (If-Unmodified-Since). Times have whole seconds, and two changes never have the same time.
//
// # Payloads
//
// A response contains the payload of a message as text if the payload is UTF-8 without control
// characters, and otherwise in Base64, so that the JSON is never much larger than the payload. A
// call to a consumer contains the payload unchanged, without JSON around it.
package broker
