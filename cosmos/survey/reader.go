package survey

import (
	"github.com/messagehub/messagehub/domain"
)

// A Reader knows the documents of mailboxes. Its methods change nothing, and are safe for
// concurrent use.
type Reader interface {
	// Groups returns the groups of a mailbox.
	Groups() []domain.Group

	// Walk returns the queries that together return all mailboxes, in the order in which they
	// must be read.
	Walk() []Query

	// Followed returns the names of the containers whose feeds show every change of a mailbox.
	Followed() []string

	// Recipient returns to whose mailbox a document of a container belongs, and false if it
	// shows nothing that a survey reads.
	Recipient(container string, doc []byte) (domain.ActorID, bool)

	// Apply returns the record of a mailbox after a document of it was read. A nil record means
	// that nothing of the mailbox was read. record is not changed. wanted are documents
	// that must be read, too; in a walk all that the document refers to.
	Apply(record []byte, container string, doc []byte, isWalk bool) (next []byte, wanted []Reference)

	// References returns the documents that a record was made from, as far as they say what is
	// so now, in the order in which they are applied. For a nil record it returns the
	// documents that begin a mailbox, whether they exist or not. The partition of each is the
	// recipient.
	References(recipient domain.ActorID, record []byte) []Reference

	// Renew returns the record of a mailbox of which all documents were read again into fresh. It
	// keeps of old what documents no longer say and have not contradicted, such as when a bundle
	// was dequeued that is removed.
	Renew(old, fresh []byte) []byte

	// Mailbox returns the line that a record shows, and false while it shows none.
	Mailbox(recipient domain.ActorID, record []byte) (domain.Mailbox, bool)

	// Damaged returns the record with the reason why a document of the mailbox cannot be read
	// from the file of an embedded engine; "" removes it.
	Damaged(record []byte, reason string) []byte
}

// A Query reads documents of all partitions of a container.
type Query struct{ Container, Text string }

// A Reference is a document.
type Reference struct {
	Container string
	Partition string // "" for any: all documents with the id
	ID        string
}
