package client

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// MaxNewerSubjects is the limit for the subjects that a [NewerFormats] records and logs.
const MaxNewerSubjects = 1000

// NewerFormatsOptions are the options of a NewerFormats.
type NewerFormatsOptions struct {
	// SubjectOf returns the subject that a document belongs to, such as a mailbox. A node does not
	// change a subject that has a document of a newer format.
	SubjectOf func(partitionKey, id string) string
	Name      string             // word for a subject in the log, such as mailbox
	Logger    *slog.Logger       // default: none
	Refused   prometheus.Counter // counts refused documents; nil: no counter
	Reported  prometheus.Gauge   // number of recorded subjects; must not be nil
}

// A NewerFormats records and logs the subjects that only newer versions may change. A subject remains
// recorded until the process reads its document in a known format again. This is rare: the document was
// restored from a backup, or a newer version lowered its format, as it does for the head of a mailbox. A
// NewerFormats is a [FormatObserver], and safe for concurrent use.
type NewerFormats struct {
	opts    NewerFormatsOptions
	present atomic.Bool // whether documents has entries

	mu        sync.Mutex
	documents map[string]string // id of the last document of a newer format, by subject
}

// NewNewerFormats returns an empty NewerFormats.
func NewNewerFormats(opts NewerFormatsOptions) *NewerFormats {
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	return &NewerFormats{opts: opts, documents: make(map[string]string)}
}

// Newer implements [FormatObserver]. It logs the first document of each subject.
func (n *NewerFormats) Newer(partitionKey, id string, err error) {
	subject := n.opts.SubjectOf(partitionKey, id)
	if n.opts.Refused != nil {
		n.opts.Refused.Inc()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.documents[subject]
	if !known && len(n.documents) == MaxNewerSubjects {
		return
	}
	n.documents[subject] = id
	n.present.Store(true)
	n.opts.Reported.Set(float64(len(n.documents)))
	if !known {
		n.opts.Logger.Error("a document was written by a newer version; this node leaves it alone", n.opts.Name, subject, "error", err)
	}
}

// Known implements [FormatObserver].
func (n *NewerFormats) Known(partitionKey string, id func() string) {
	if !n.present.Load() {
		return
	}
	document := id()
	subject := n.opts.SubjectOf(partitionKey, document)
	n.mu.Lock()
	defer n.mu.Unlock()
	if seen, ok := n.documents[subject]; ok && seen == document {
		delete(n.documents, subject)
		n.present.Store(len(n.documents) > 0)
		n.opts.Reported.Set(float64(len(n.documents)))
	}
}

// List returns up to limit subjects in order, and the number of all subjects.
func (n *NewerFormats) List(limit int) ([]string, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Sorted(maps.Keys(n.documents))
	return all[:min(limit, len(all))], len(all)
}
