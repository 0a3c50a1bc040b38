package repository

import (
	"context"
	"io"
)

// An Exchange is the part of the content store that the hub shares with its
// domains: it leaves lists of ids there, and they leave what it has asked them for.
// What the hub puts is written once, as in all of Content. What a domain leaves may
// change or go at any time, so the hub makes it its own before it relies on it.
//
// Nothing keeps those who share it from each other: a party that may write to it can
// replace what others have left there, lists of ids included, until it is read. A
// domain that gets the wrong list makes the content of other events; what the hub has
// made its own is out of reach. So all who can write to it have to trust each other.
type Exchange interface {
	Content

	// Name returns the name that an object has here which a domain names by a URI. It
	// fails as Fetch does if there can be no such object.
	Name(uri string) (string, error)

	// Fetch opens what a domain has left, which it names by a URI. It fails with
	// Invalid if the URI is malformed or of another account or container, and with
	// NotFound if there is no such object. No address that a domain states is ever
	// dialled. The caller closes the reader, which yields one version whole, or fails
	// with Damaged if the object changes while it is read.
	Fetch(ctx context.Context, uri string) (io.ReadCloser, error)

	// Discard removes what a domain has left, under the same conditions. What is
	// not there is no error.
	Discard(ctx context.Context, uri string) error
}
