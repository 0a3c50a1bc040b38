package cosmos

import (
	"strings"

	"github.com/messagehub/messagehub/cosmos/client"
)

// newNewerMailboxes returns the record of the mailboxes that this node leaves to newer versions.
func newNewerMailboxes(opts *Options, m *repairMetrics) *client.NewerFormats {
	return client.NewNewerFormats(client.NewerFormatsOptions{
		SubjectOf: func(partitionKey, _ string) string { return mailboxOf(partitionKey) },
		Name:      "mailbox", Logger: opts.Logger, Refused: m.refusedFormats, Reported: m.newerMailboxes,
	})
}

// NewerFormats returns up to limit mailboxes, in order, that this node leaves alone because a newer
// version has stored them in a format that this version does not know. n is their number; the node
// remembers 1,000.
func (r *Repository) NewerFormats(limit int) (mailboxes []string, n int) { return r.newer.List(limit) }

// mailboxOf returns the recipient to whom a partition belongs. The partition of a drawer, or of a
// document for all recipients, names no recipient; for it, mailboxOf returns the key.
func mailboxOf(key string) string {
	if mailbox, _, _ := strings.Cut(key, "|"); mailbox != "" {
		return mailbox
	}
	return key
}
