package repository

import (
	"context"
	"io"
)

// An Exchange is the part of the content store that the hub shares with its domains: the hub puts lists
// of ids there, and the domains put the content that the hub has requested. An object of the hub is
// written once, as in all of Content. An object of a domain may change or disappear at any time, so the
// hub copies it before it depends on it.
//
// Nothing protects those who share an Exchange from each other: a domain with write access can replace
// the objects of others, lists of ids included, until they are read. A domain that gets the wrong list
// produces the content of other events. The hub's own copies are out of reach. So all parties with
// write access have to trust each other.
type Exchange interface {
	Content

	// Name returns the name in the Exchange of an object that a domain names by a URI. It fails as
	// Fetch does if there can be no such object.
	Name(uri string) (string, error)

	// Fetch opens an object that a domain has put and names by a URI. It fails with Invalid if the URI
	// is malformed or of another account or container, and with NotFound if there is no such object. It
	// never connects to an address that a domain states. The caller closes the reader, which yields one
	// whole version, or fails with Damaged if the object changes while it is read.
	Fetch(ctx context.Context, uri string) (io.ReadCloser, error)

	// Discard removes an object that a domain has put, under the same conditions. Removing a missing
	// object is not an error.
	Discard(ctx context.Context, uri string) error
}
