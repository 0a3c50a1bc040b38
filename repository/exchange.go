package repository

import (
	"context"
	"io"
)

// An Exchange is the part of the content store that the hub shares with its domains: the hub puts lists
// of ids there, and the domains put the requested content there. An object of the hub is written once,
// as in every Content. An object of a domain may change or disappear at any time, so the hub copies the
// object before using it.
//
// All parties with write access to an Exchange must trust each other: a domain with write access can
// replace the objects of other parties, including lists of ids, until these objects are read. A domain
// that reads a wrong list produces the content of other events. Domains cannot access the hub's copies.
type Exchange interface {
	Content

	// Name returns the name in the Exchange of an object that a domain identifies by a URI. It fails as
	// Fetch does if the URI cannot identify an object of the Exchange.
	Name(uri string) (string, error)

	// Fetch opens an object that a domain has put and identifies by a URI. It fails with Invalid if the
	// URI is malformed or of another account or container, and with NotFound if the object does not
	// exist. It never connects to an address that a domain states. The caller closes the reader, which
	// yields one complete version, or fails with Damaged if the object changes during the read.
	Fetch(ctx context.Context, uri string) (io.ReadCloser, error)

	// Discard removes an object that a domain has put and identifies by a URI. It fails with Invalid as
	// Fetch does. Removing a missing object is not an error.
	Discard(ctx context.Context, uri string) error
}
