package wire

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// A Gateway decides which ids of documents can be used.
type Gateway int

const (
	// Strict refuses to create what one of the other two could not find.
	Strict Gateway = iota
	// Routing is the gateway that accounts have: some ids can be created and
	// never be addressed again.
	Routing
	// Compute is the dedicated gateway: every id can be used.
	Compute
)

// A Door is what may differ between two ways into the same account.
type Door struct {
	Gateway Gateway

	// Advertise is the host and port that the account document names, where
	// clients send all further requests. Empty: the one a request came to.
	Advertise string

	// Unmetered lets requests in at any rate, and makes none wait: what comes in
	// here spends nothing of the throughput. It is how a benchmark fills an account
	// whose physics it is about to measure.
	Unmetered bool
}

var escaped = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// checkAddress answers, for the routing gateway, requests to documents whose
// id it cannot carry. It is asked before the signature is checked: that such
// a request fails as unauthorized is what the real one does.
func (r *serverRequest) checkAddress() error {
	if r.door.Gateway != Routing || len(r.segments) != 6 || r.segments[4] != "docs" {
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

// anyID reports whether documents may have ids that some gateway cannot carry.
func (r *serverRequest) anyID() bool { return r.door.Gateway != Strict }
