package push

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The kinds of documents of a stream.
var (
	headDocument = client.DocumentKind{Name: "head", Format: 1}
	pageDocument = client.DocumentKind{Name: "page", Format: 1}
	idDocument   = client.DocumentKind{Name: "id", Format: 1}
)

const headID = "head"

// A streamHead is the head of a segment of a stream. Each append to the segment replaces the head.
type streamHead struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	WriteID      string `json:"writeId"`
	Opened       int64  `json:"opened"` // microseconds
	Bytes        int64  `json:"bytes"`  // bytes of all entries of the segment
	Sealed       bool   `json:"sealed,omitempty"`
	// Priorities maps each priority that has entries in this segment or in an earlier one to its newest
	// entries.
	Priorities map[string]*streamTail `json:"priorities"`
	Sync       []string               `json:"sync,omitempty"` // ids of the cursors for whose deliveries senders wait
	client.Document

	segment int
	etag    azcore.ETag
	sync    []domain.CursorID // parsed form of Sync; may be shared with other heads, so it is never modified
}

func (*streamHead) DocumentKind() client.DocumentKind { return headDocument }

// Validate parses the sync cursors of a head that was read.
func (h *streamHead) Validate() (err error) {
	h.sync = nil
	for _, text := range h.Sync {
		id, err := domain.ParseCursorID(text)
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		h.sync = append(h.sync, id)
	}
	return nil
}

// A streamTail contains the newest entries of a priority. A page will be created from these entries.
type streamTail struct {
	Page    int                   `json:"page"`
	First   int64                 `json:"first"` // number of the first entry of the tail
	Runs    []appendRun           `json:"runs,omitempty"`
	Unknown client.UnknownMembers `json:",embed"`
}

// An appendRun contains the consecutive entries of one append.
type appendRun struct {
	WriteID   string                `json:"w"`
	Published int64                 `json:"at"` // microseconds
	Entries   []streamEntry         `json:"e"`
	Unknown   client.UnknownMembers `json:",embed"`

	last domain.TraceContext // span of the last entry
}

type streamEntry struct {
	ID          string                `json:"i,omitempty"`
	Attributes  map[string]string     `json:"a,omitempty"`
	ContentType string                `json:"t,omitempty"`
	Text        string                `json:"d,omitempty"` // payload as text, if it is valid UTF-8
	Bytes       []byte                `json:"b,omitempty"` // payload as bytes, if it is not valid UTF-8
	Object      string                `json:"o,omitempty"` // object in the content store that contains a large payload
	Length      int64                 `json:"l,omitempty"`
	Sum         uint32                `json:"s,omitempty"`
	Accepted    []byte                `json:"p,omitempty"` // span of the append, encoded by [domain.TraceContext.AppendStored]; empty if the previous entry of the run has the same span
	Unknown     client.UnknownMembers `json:",embed"`
}

// noSpan is the stored span of an entry that has no span but follows an entry with a span.
var noSpan = []byte{0}

// addEntry appends an entry to r.
func (r *appendRun) addEntry(e streamEntry, accepted domain.TraceContext) {
	if accepted != r.last {
		e.Accepted = accepted.AppendStored(nil)
		if accepted.IsZero() {
			e.Accepted = noSpan
		}
	}
	r.last, r.Entries = accepted, append(r.Entries, e)
}

// acceptedAfter returns the span of e, or zero if e has none. before is the span of the previous entry in
// the same run.
func (e *streamEntry) acceptedAfter(before domain.TraceContext) domain.TraceContext {
	if len(e.Accepted) == 0 {
		return before
	}
	return domain.ParseStored(e.Accepted)
}

// A streamPage contains the entries of a priority that were moved out of the head. A page is never
// modified.
type streamPage struct {
	ID           string      `json:"id"`
	PartitionKey string      `json:"partitionKey"`
	First        int64       `json:"first"`
	Runs         []appendRun `json:"runs"`
	TTL          int64       `json:"ttl"` // seconds
	client.FormatNumber
}

func (*streamPage) DocumentKind() client.DocumentKind { return pageDocument }

// An idDoc contains the position of the message with an id. It expires after repository.IDRetention.
type idDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	WriteID      string `json:"writeId"` // write id of the append of the message
	Position     string `json:"position"`
	Digest       []byte `json:"digest"`
	TTL          int64  `json:"ttl"`
	client.FormatNumber
}

func (*idDoc) DocumentKind() client.DocumentKind { return idDocument }

func segmentKey(stream domain.StreamName, segment int) string {
	return stream.String() + "|" + strconv.Itoa(segment)
}

func pageID(priority, n int) string { return fmt.Sprintf("page-%d-%d", priority, n) }

func idOf(message string) string {
	sum := sha256.Sum256([]byte(message))
	return "id|" + base64.RawURLEncoding.EncodeToString(sum[:])
}

func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func toMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// tailOf returns the newest entries of a priority. If the priority has no entries, it returns an empty
// tail.
func (h *streamHead) tailOf(priority int) *streamTail {
	if t := h.Priorities[strconv.Itoa(priority)]; t != nil {
		return t
	}
	return &streamTail{}
}

// nextNumber returns the number that the next appended entry will have.
func (t *streamTail) nextNumber() int64 { return t.First + countOf(t.Runs) }

func countOf(runs []appendRun) int64 {
	n := 0
	for i := range runs {
		n += len(runs[i].Entries)
	}
	return int64(n)
}

// runAt returns the run that contains the entry with the given number, or nil. first is the number of the
// first entry in runs.
func runAt(runs []appendRun, first, number int64) *appendRun {
	for i := range runs {
		if n := int64(len(runs[i].Entries)); number >= first && number < first+n {
			return &runs[i]
		}
		first += int64(len(runs[i].Entries))
	}
	return nil
}

// makeEntry returns the stored form of m. If object is not empty, the payload is in that object, and the
// entry omits it.
func makeEntry(m *domain.Message, object string) streamEntry {
	e := streamEntry{ID: m.ID, Attributes: m.Attributes, ContentType: m.ContentType}
	switch {
	case object != "":
		e.Object, e.Length, e.Sum = object, int64(len(m.Payload)), repository.SumOf(m.Payload)
	case utf8.Valid(m.Payload):
		e.Text = string(m.Payload)
	default:
		e.Bytes = m.Payload
	}
	return e
}

// toEntry converts e to a repository.Entry.
func (e *streamEntry) toEntry(at domain.Position, published int64, accepted domain.TraceContext) repository.Entry {
	out := repository.Entry{
		Message:  domain.Message{ID: e.ID, Priority: at.Priority, Attributes: e.Attributes, ContentType: e.ContentType},
		Position: at, Published: fromMicros(published), Accepted: accepted,
	}
	switch {
	case e.Object != "":
		out.PayloadAt = repository.Section{Object: e.Object, Length: e.Length, Sum: e.Sum}
	case e.Text != "":
		out.Payload = []byte(e.Text)
	default:
		out.Payload = e.Bytes
	}
	return out
}
