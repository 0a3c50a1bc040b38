package wire

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// A Gateway determines which document ids an endpoint accepts.
type Gateway int

const (
	// Strict refuses to create documents that the routing gateway could not address.
	Strict Gateway = iota
	// Routing is the default gateway of accounts. Documents with some ids can be created, but not addressed later.
	Routing
	// Compute is the dedicated gateway. It can address every id.
	Compute
)

// EndpointOptions are the options that can differ between endpoints of one account.
type EndpointOptions struct {
	Gateway Gateway

	// Advertise is the host and port in the account document, which clients use for all later requests. By default, it
	// is the host of the request.
	Advertise string

	// Unmetered exempts requests from throttling and latency, and does not count their charges toward the throughput.
	// It is for benchmarks that fill an account before they measure.
	Unmetered bool
}

var escaped = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// checkAddress returns an error if the routing gateway cannot address a document's id. It runs before the signature
// check, because Azure's gateway responds with 401, whatever the signature.
func (r *serverRequest) checkAddress() error {
	if r.endpoint.Gateway != Routing || len(r.segments) != 6 || r.segments[4] != "docs" {
		return nil
	}
	id := r.segments[5]
	switch {
	case strings.ContainsAny(id, "\r\n\t"):
		return badRequest("the request URL is invalid: the document id %q has a control character", id)
	case strings.HasSuffix(id, " "), strings.ContainsAny(id, `/\#`), escaped.MatchString(id):
		return &engine.Error{Status: http.StatusUnauthorized, Message: "the routing gateway cannot address a document with this id"}
	}
	return nil
}

// allowsAnyID reports whether the endpoint accepts ids that some gateways cannot address.
func (r *serverRequest) allowsAnyID() bool { return r.endpoint.Gateway != Strict }
