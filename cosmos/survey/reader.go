package survey

import (
	"github.com/messagehub/messagehub/domain"
)

// A Reader derives records of mailboxes from documents, and lines from records. Its methods have no side
// effects, and are safe for concurrent use.
type Reader interface {
	// Groups returns the groups of a mailbox.
	Groups() []domain.Group

	// Walk returns the queries that together return all mailboxes, in the order in which they must run.
	Walk() []Query

	// Followed returns the names of the containers whose feeds together contain every change of a mailbox.
	Followed() []string

	// Recipient returns the recipient to whose mailbox a document of a container belongs, and false if a
	// survey does not need the document.
	Recipient(container string, doc []byte) (domain.ActorID, bool)

	// Apply returns the record of a mailbox with the content of one of its documents, and does not change
	// record. A nil record means that no document of the mailbox was read before. wanted are documents
	// that must be read, too. In a walk, these are all documents to which doc refers.
	Apply(record []byte, container string, doc []byte, isWalk bool) (next []byte, wanted []Reference)

	// References returns the documents that describe the current state of a mailbox, according to its
	// record, in the order in which they are applied. For a nil record, it returns the documents that a
	// mailbox has first, which need not exist. The partition of each document is the recipient.
	References(recipient domain.ActorID, record []byte) []Reference

	// Renew returns the record of a mailbox after all its documents were read again into fresh. The
	// record retains values of old that no document contains any longer, such as the time when a removed
	// bundle was dequeued, unless fresh contradicts them.
	Renew(old, fresh []byte) []byte

	// Mailbox returns the line for a record, and false if the record is not complete yet.
	Mailbox(recipient domain.ActorID, record []byte) (domain.Mailbox, bool)

	// Damaged returns record with a reason why a document of the mailbox cannot be read from the file of
	// an embedded engine. If reason is empty, Damaged returns record without a reason.
	Damaged(record []byte, reason string) []byte
}

// A Query reads documents of all partitions of a container.
type Query struct{ Container, Text string }

// A Reference identifies a document.
type Reference struct {
	Container string
	Partition string // partition key; "" selects the documents with the id in all partitions
	ID        string
}
