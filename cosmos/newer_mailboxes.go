package cosmos

import (
	"strings"

	"github.com/messagehub/messagehub/cosmos/client"
)

// newNewerMailboxes returns the list of the mailboxes that only nodes of a newer version can serve.
func newNewerMailboxes(opts *Options, m *repairMetrics) *client.NewerFormats {
	return client.NewNewerFormats(client.NewerFormatsOptions{
		SubjectOf: func(partitionKey, _ string) string { return mailboxOf(partitionKey) },
		Name:      "mailbox", Logger: opts.Logger, Refused: m.refusedFormats, Reported: m.newerMailboxes,
	})
}

// NewerFormats returns up to limit mailboxes, in order, that this node does not serve because their format
// is newer than this version knows. n is the number of these mailboxes, at most 1,000.
func (r *Repository) NewerFormats(limit int) (mailboxes []string, n int) { return r.newer.List(limit) }

// mailboxOf returns the recipient in a partition key. The key of a drawer's partition, or of a document
// for all recipients, contains no recipient; mailboxOf returns the key itself.
func mailboxOf(key string) string {
	if mailbox, _, _ := strings.Cut(key, "|"); mailbox != "" {
		return mailbox
	}
	return key
}
