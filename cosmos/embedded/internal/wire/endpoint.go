package wire

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// A Gateway decides which document ids are accepted.
type Gateway int

const (
	// Strict refuses to create documents that the routing gateway could not address.
	Strict Gateway = iota
	// Routing is the default gateway of accounts: some ids can be created, but not addressed
	// afterwards.
	Routing
	// Compute is the dedicated gateway: every id can be addressed.
	Compute
)

// EndpointOptions are the settings in which two endpoints of one account may differ.
type EndpointOptions struct {
	Gateway Gateway

	// Advertise is the host and port in the account document, to which clients send all further
	// requests. Empty: the host of the request.
	Advertise string

	// Unmetered exempts requests from throttling and latency, and does not count their charges
	// against the throughput. A benchmark fills an account through an unmetered endpoint before it
	// measures.
	Unmetered bool
}

var escaped = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// checkAddress refuses requests to documents whose id the routing gateway cannot address. It
// runs before the signature is checked, because the real gateway also refuses such a request as
// unauthorized.
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

// allowsAnyID reports whether documents may have ids that some gateways cannot address.
func (r *serverRequest) allowsAnyID() bool { return r.endpoint.Gateway != Strict }
