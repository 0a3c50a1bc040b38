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

	// Recipient returns the recipient whose mailbox has a document of a container, and false if a
	// survey does not need the document.
	Recipient(container string, doc []byte) (domain.ActorID, bool)

	// Apply returns the record of a mailbox after one of its documents was read. A nil record means
	// that nothing of the mailbox was read. record is not changed. wanted are documents that must be
	// read, too; in a walk, all documents to which this one refers.
	Apply(record []byte, container string, doc []byte, isWalk bool) (next []byte, wanted []Reference)

	// References returns the documents from which a record was made, as far as they describe the
	// current state, in the order in which they are applied. For a nil record it returns the documents
	// with which a mailbox begins, whether they exist or not. The partition of each is the recipient.
	References(recipient domain.ActorID, record []byte) []Reference

	// Renew returns the record of a mailbox whose documents were all read again into fresh. It keeps
	// from old what documents no longer contain, such as when a removed bundle was dequeued, unless
	// they contradict it.
	Renew(old, fresh []byte) []byte

	// Mailbox returns the line for a record, and false if the record is not complete yet.
	Mailbox(recipient domain.ActorID, record []byte) (domain.Mailbox, bool)

	// Damaged returns the record with the reason why a document of the mailbox cannot be read from the
	// file of an embedded engine; "" removes the reason.
	Damaged(record []byte, reason string) []byte
}

// A Query reads documents of all partitions of a container.
type Query struct{ Container, Text string }

// A Reference identifies a document.
type Reference struct {
	Container string
	Partition string // "" for any: all documents with the id
	ID        string
}
