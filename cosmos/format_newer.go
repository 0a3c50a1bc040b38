package cosmos

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// maxNewerMailboxes bounds how many mailboxes are remembered and logged.
const maxNewerMailboxes = 1000

// newerMailboxes remembers the mailboxes that this node leaves to newer versions.
// Format numbers never go down, so a mailbox stays in it until the process ends, unless
// a document of it turns out to have a known format: then it was restored.
type newerMailboxes struct {
	logger   *slog.Logger
	refused  prometheus.Counter
	reported prometheus.Gauge

	present atomic.Bool // documents is not empty

	mu        sync.Mutex
	documents map[string]string // by mailbox: the document that was seen last
}

// Newer implements [client.FormatObserver]. It logs the first document of each mailbox.
func (n *newerMailboxes) Newer(partitionKey, document string, err error) {
	mailbox := mailboxOf(partitionKey)
	n.refused.Inc()
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.documents[mailbox]
	if !known && len(n.documents) == maxNewerMailboxes {
		return
	}
	n.documents[mailbox] = document
	n.present.Store(true)
	n.reported.Set(float64(len(n.documents)))
	if !known {
		n.logger.Error("a mailbox was written by a newer version; this node leaves it alone", "mailbox", mailbox, "error", err)
	}
}

// Known implements [client.FormatObserver].
func (n *newerMailboxes) Known(partitionKey string, document func() string) {
	if !n.present.Load() {
		return
	}
	mailbox := mailboxOf(partitionKey)
	n.mu.Lock()
	defer n.mu.Unlock()
	if seen, ok := n.documents[mailbox]; ok && seen == document() {
		delete(n.documents, mailbox)
		n.present.Store(len(n.documents) > 0)
		n.reported.Set(float64(len(n.documents)))
	}
}

// list returns up to limit of the mailboxes, in order, and how many there are.
func (n *newerMailboxes) list(limit int) ([]string, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Sorted(maps.Keys(n.documents))
	return all[:min(limit, len(all))], len(all)
}

// NewerFormats returns up to limit of the mailboxes that this node leaves alone because
// a newer version has stored them in a format that it does not know, in order, and how
// many it has met; it remembers 1,000.
func (r *Repository) NewerFormats(limit int) (mailboxes []string, n int) { return r.newer.list(limit) }

// mailboxOf returns the recipient to whom a partition belongs. The partition of a
// drawer, or of a document of all recipients, names none; then it is the partition.
func mailboxOf(key string) string {
	if mailbox, _, _ := strings.Cut(key, "|"); mailbox != "" {
		return mailbox
	}
	return key
}
