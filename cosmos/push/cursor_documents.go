package push

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The kinds of documents of a cursor. Each document stores the name of its kind in the member "kind".
var (
	cursorDocument = client.DocumentKind{Name: "cursor", Format: 1}
	retryDocument  = client.DocumentKind{Name: "retry", Format: 1}
	deadDocument   = client.DocumentKind{Name: "dead", Format: 1}
	entryDocument  = client.DocumentKind{Name: "entry", Format: 1}
)

const cursorID = "cursor"

// A cursorDoc is the stored form of a domain.Standing. It has no nested objects, because an older version
// of the hub that replaces the document preserves only unknown members at the top level. Empty members
// are omitted, because documents below 1 KB cost least to write.
type cursorDoc struct {
	ID           string   `json:"id"`
	PartitionKey string   `json:"partitionKey"`
	Kind         string   `json:"kind"`
	WriteID      string   `json:"writeId"`
	Stream       string   `json:"stream"`
	Segment      int      `json:"segment,omitempty"`
	At           []string `json:"at,omitempty"`
	Open         []string `json:"open,omitempty"`

	Triggered int64 `json:"triggered,omitempty"`
	Filtered  int64 `json:"filtered,omitempty"`
	Delivered int64 `json:"delivered,omitempty"`
	Errored   int64 `json:"errored,omitempty"`
	Cancelled int64 `json:"cancelled,omitempty"`
	Expired   int64 `json:"expired,omitempty"`
	Attempts  int64 `json:"attempts,omitempty"`

	Retries int    `json:"retries,omitempty"`
	Late    int    `json:"late,omitempty"`   // number of retries with few remaining attempts
	Digest  string `json:"digest,omitempty"` // 16 hexadecimal digits, because a JSON number is exact only up to 53 bits
	Listed  int64  `json:"listed,omitempty"` // in microseconds, like all times in this document

	State     string `json:"state,omitempty"` // "": active
	Reason    string `json:"reason,omitempty"`
	Resumed   int    `json:"resumed,omitempty"`
	Hold      int64  `json:"hold,omitempty"`
	HoldFor   int64  `json:"holdFor,omitempty"` // microseconds
	Failures  int    `json:"failures,omitempty"`
	BreakerTo int64  `json:"breakerTo,omitempty"`

	FailedSince int64 `json:"failedSince,omitempty"`

	By             string   `json:"by,omitempty"`
	Limit          int      `json:"limit,omitempty"`
	Released       bool     `json:"released,omitempty"`
	Careful        bool     `json:"careful,omitempty"`
	CarefulOpen    []string `json:"carefulOpen,omitempty"`    // entries, including those of retries, during whose delivery an earlier owner may have crashed
	CarefulRetries int      `json:"carefulRetries,omitempty"` // number of suspect retries; only older versions of the hub store this member
	CarefulFresh   []int    `json:"carefulFresh,omitempty"`
	Claim          string   `json:"claim,omitempty"` // members Entry, Count and By of a domain.Claim, as text

	Followed      int      `json:"followed,omitempty"` // number of the last replay request that the owner of the cursor has carried out
	ReplayID      string   `json:"replayId,omitempty"`
	ReplayNumber  int      `json:"replayNumber,omitempty"`
	ReplayFrom    int64    `json:"replayFrom,omitempty"`
	ReplayTo      int64    `json:"replayTo,omitempty"`
	ReplayFilter  string   `json:"replayFilter,omitempty"`
	ReplayDead    bool     `json:"replayDead,omitempty"` // whether the replay is limited to dead letters
	ReplayRate    int      `json:"replayRate,omitempty"`
	ReplayState   string   `json:"replayState,omitempty"` // state of the replay; empty while the replay runs
	ReplayAt      string   `json:"replayAt,omitempty"`
	ReplayEnd     []string `json:"replayEnd,omitempty"` // the last entry to replay, for each priority with entries
	ReplaySeen    int64    `json:"replaySeen,omitempty"`
	ReplayMatched int64    `json:"replayMatched,omitempty"`
	ReplaySkipped int64    `json:"replaySkipped,omitempty"`

	HeldID      string   `json:"heldId,omitempty"`      // id of the open bundle that the consumer has fetched
	Held        []string `json:"held,omitempty"`        // positions of the deliveries in the open bundle that were neither open nor retries
	HeldRetries []string `json:"heldRetries,omitempty"` // positions of the retries in the open bundle
	Dequeued    []string `json:"dequeued,omitempty"`    // ids of the bundles that were dequeued last

	Recent   []string `json:"recent,omitempty"`
	Marks    []string `json:"marks,omitempty"`    // each mark is a time in microseconds and a number for each priority
	Expiries []string `json:"expiries,omitempty"` // each expiry is a first entry, the number after the last entry, and a time

	Retired bool  `json:"retired,omitempty"` // whether the cursor is closed, has no deliveries, and is no longer listed in a shard
	TTL     int64 `json:"ttl,omitempty"`     // time to live in seconds; only a retired cursor has one
	client.Document

	etag azcore.ETag
}

func (*cursorDoc) DocumentKind() client.DocumentKind { return cursorDocument }

var stateNames = map[domain.CursorState]string{domain.Active: "", domain.Paused: "paused", domain.Closed: "closed"}

func makeCursorDoc(id domain.CursorID, s *domain.Standing, writeID string) *cursorDoc {
	c := s.Counters
	d := &cursorDoc{
		ID: cursorID, PartitionKey: id.String(), Kind: cursorDocument.Name, WriteID: writeID,
		Stream: s.Stream.String(), Segment: s.Segment, At: textsOf(s.At), Open: textsOf(s.Open),
		Triggered: c.Triggered, Filtered: c.Filtered, Delivered: c.Delivered, Errored: c.Errored,
		Cancelled: c.Cancelled, Expired: c.Expired, Attempts: c.Attempts,
		Retries: s.Retries, Late: s.Late, Listed: toMicros(s.Listed), FailedSince: toMicros(s.FailedSince),
		State: stateNames[s.State], Reason: s.Reason, Resumed: s.Resumed, Hold: toMicros(s.Hold), HoldFor: s.HoldFor.Microseconds(), Failures: s.Failures, BreakerTo: toMicros(s.BreakerTo),
		By: s.By, Limit: s.Limit, Released: s.Released,
	}
	if s.Digest != 0 {
		d.Digest = fmt.Sprintf("%016x", s.Digest)
	}
	if s.Caution != nil {
		d.Careful = true
		d.CarefulFresh = s.Caution.Fresh[:]
		for _, e := range s.Caution.Suspects {
			d.CarefulOpen = append(d.CarefulOpen, e.String())
		}
	}
	if s.Claim != nil {
		d.Claim = fmt.Sprintf("%s %d %s", s.Claim.Entry, s.Claim.Count, s.Claim.By)
	}
	for i := range s.Recent {
		d.Recent = append(d.Recent, attemptText(&s.Recent[i]))
	}
	for i := range s.Marks {
		d.Marks = append(d.Marks, markText(&s.Marks[i]))
	}
	for i := range s.Expiries {
		x := &s.Expiries[i]
		d.Expiries = append(d.Expiries, fmt.Sprintf("%s %d %d", x.From, x.To, toMicros(x.At)))
	}
	d.setReplay(s)
	if b := s.Held; b != nil {
		d.HeldID, d.Held, d.HeldRetries = b.ID, textsOf(b.Taken), textsOf(b.Retries)
	}
	d.Dequeued, d.Unknown = s.Dequeued, s.Unknown
	return d
}

// toStanding parses the standing that d stores.
func (d *cursorDoc) toStanding() (domain.Standing, error) {
	var p documentParser
	s := domain.Standing{
		Stream: parse(&p, d.Stream, domain.ParseStreamName), Segment: d.Segment,
		At: parseAll(&p, d.At, domain.ParsePosition), Open: parseAll(&p, d.Open, domain.ParsePosition),
		Counters: domain.Counters{
			Triggered: d.Triggered, Filtered: d.Filtered, Delivered: d.Delivered, Errored: d.Errored,
			Cancelled: d.Cancelled, Expired: d.Expired, Attempts: d.Attempts,
		},
		Retries: d.Retries, Late: d.Late, Listed: fromMicros(d.Listed), FailedSince: fromMicros(d.FailedSince),
		Reason: d.Reason, Resumed: d.Resumed, Hold: fromMicros(d.Hold), HoldFor: time.Duration(d.HoldFor) * time.Microsecond, Failures: d.Failures, BreakerTo: fromMicros(d.BreakerTo),
		By: d.By, Limit: d.Limit, Released: d.Released,
		Recent: parseAll(&p, d.Recent, parseAttempt), Marks: parseAll(&p, d.Marks, parseMark), Expiries: parseAll(&p, d.Expiries, parseExpiry), Unknown: d.Unknown,
	}
	if d.Digest != "" {
		s.Digest = parse(&p, d.Digest, func(s string) (uint64, error) { return strconv.ParseUint(s, 16, 64) })
	}
	s.State = parse(&p, d.State, parseState)
	if d.Careful {
		s.Caution = &domain.Suspects{Suspects: parseAll(&p, d.CarefulOpen, parseEntryID)}
		copy(s.Caution.Fresh[:], d.CarefulFresh)
	}
	if d.Claim != "" {
		s.Claim = parse(&p, d.Claim, parseClaim)
	}
	s.Followed, s.Replay, s.Dequeued = d.Followed, d.toReplay(&p), d.Dequeued
	if d.HeldID != "" {
		s.Held = &domain.HeldBundle{ID: d.HeldID, Taken: parseAll(&p, d.Held, domain.ParsePosition), Retries: parseAll(&p, d.HeldRetries, domain.ParsePosition)}
	}
	if p.err != nil {
		return s, domain.Errorf(domain.Damaged, "cursor %s: %w", d.PartitionKey, p.err)
	}
	return s, nil
}

// A retryDoc is the stored form of a domain.Retry: a delivery that waits for its next attempt, or a dead
// letter.
type retryDoc struct {
	ID           string   `json:"id"`
	PartitionKey string   `json:"partitionKey"`
	Kind         string   `json:"kind"`
	Position     string   `json:"position"`
	Published    int64    `json:"published,omitempty"`
	Attempts     int      `json:"attempts,omitempty"`
	Replay       int      `json:"replay,omitempty"` // number of the last request that replayed this delivery
	History      []string `json:"history,omitempty"`
	Due          int64    `json:"due,omitempty"`
	Reason       string   `json:"reason,omitempty"`
	TTL          int64    `json:"ttl,omitempty"` // time to live in seconds; only a dead letter has one
	client.Document
}

func (d *retryDoc) DocumentKind() client.DocumentKind {
	if d.Kind == deadDocument.Name {
		return deadDocument
	}
	return retryDocument
}

// retryID returns the document id of a retry. The ids sort in the same order as the entries.
func retryID(e domain.EntryID) string {
	return fmt.Sprintf("%s%016d", retryPrefix(e.Priority), e.Number)
}

// retryPrefix returns the prefix of the document ids of all retries of a priority.
func retryPrefix(priority int) string { return fmt.Sprintf("retry|%d|", priority) }

func makeRetryDoc(id domain.CursorID, r *domain.Retry, deadSeconds int64) *retryDoc {
	position := r.Position
	d := &retryDoc{
		ID: retryID(r.EntryID), PartitionKey: id.String(), Kind: retryDocument.Name, Position: position.String(),
		Published: toMicros(r.Published), Attempts: r.Attempts, Replay: r.Replay, Due: toMicros(r.Due), Reason: r.Reason,
	}
	for i := range r.History {
		d.History = append(d.History, attemptText(&r.History[i]))
	}
	if r.Dead {
		d.Kind, d.TTL = deadDocument.Name, deadSeconds
	}
	d.Unknown = r.Unknown
	return d
}

func (d *retryDoc) toRetry() (domain.Retry, error) {
	var p documentParser
	r := domain.Retry{
		Position: parse(&p, d.Position, domain.ParsePosition), Published: fromMicros(d.Published), Attempts: d.Attempts, Replay: d.Replay,
		History: parseAll(&p, d.History, parseAttempt), Due: fromMicros(d.Due), Reason: d.Reason,
		Dead: d.Kind == deadDocument.Name, Unknown: d.Unknown,
	}
	if p.err != nil {
		return r, domain.Errorf(domain.Damaged, "document %s of cursor %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return r, nil
}

// An entryDoc is the stored form of a repository.ShardEntry or, if its kind is watched, of a
// repository.WatchedStream.
type entryDoc struct {
	ID           string `json:"id"` // id of the cursor; for a stream with watches, the result of watchedID
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Stream       string `json:"stream"`
	Due          int64  `json:"due,omitempty"`
	// Replays are the latest requests to replay, peek or dequeue, sorted by number.
	Replays []replayRequestDoc `json:"replays,omitempty"`
	Changes int64              `json:"changes,omitempty"` // number of changes of the subscription or watch of the cursor
	IsPaged bool               `json:"paged,omitempty"`   // whether a watch page lists the cursor, so that this entry may be removed
	Pages   int                `json:"pages,omitempty"`   // number of watch pages of the stream; only in a document of the kind watched
	client.Document

	etag azcore.ETag
}

func (d *entryDoc) DocumentKind() client.DocumentKind {
	if d.Kind == watchedDocument.Name {
		return watchedDocument
	}
	return entryDocument
}

// watchedStream parses the stream that d stores. The kind of d must be watched.
func (d *entryDoc) watchedStream() (repository.WatchedStream, error) {
	stream, err := domain.ParseStreamName(d.Stream)
	if err != nil {
		err = domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, err)
	}
	return repository.WatchedStream{Stream: stream, Pages: d.Pages}, err
}

// entry parses the shard entry that d stores.
func (d *entryDoc) entry() (repository.ShardEntry, error) {
	var p documentParser
	e := repository.ShardEntry{
		Cursor: parse(&p, d.ID, domain.ParseCursorID), Stream: parse(&p, d.Stream, domain.ParseStreamName), Due: fromMicros(d.Due),
		Requested: d.lastRequest(), Changes: d.Changes,
	}
	if p.err != nil {
		return e, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return e, nil
}

func shardKey(shard int) string { return "|shard|" + strconv.Itoa(shard) }

// A documentParser parses the members of a document and retains the first error.
type documentParser struct{ err error }

func parse[T any](p *documentParser, text string, f func(string) (T, error)) T {
	v, err := f(text)
	if err != nil && p.err == nil {
		p.err = err
	}
	return v
}

func parseAll[T any](p *documentParser, texts []string, f func(string) (T, error)) []T {
	var all []T
	for _, t := range texts {
		all = append(all, parse(p, t, f))
	}
	return all
}

func textsOf(positions []domain.Position) []string {
	var texts []string
	for _, p := range positions {
		texts = append(texts, p.String())
	}
	return texts
}

func parseState(text string) (domain.CursorState, error) {
	for state, name := range stateNames {
		if name == text {
			return state, nil
		}
	}
	return 0, fmt.Errorf("state: want paused or closed, got %q", domain.Shorten(text))
}

func parseEntryID(text string) (domain.EntryID, error) {
	p, err := domain.ParsePosition(text + ".0.0")
	return p.EntryID, err
}

func parseClaim(text string) (*domain.Claim, error) {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("claim: want entry, count and incarnation, got %q", domain.Shorten(text))
	}
	e, err := parseEntryID(parts[0])
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	n, err := strconv.Atoi(parts[1])
	return &domain.Claim{Entry: e, Count: n, By: parts[2]}, err
}

// parseExpiry parses the text that makeCursorDoc stores for an expiry.
func parseExpiry(text string) (domain.Expiry, error) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 {
		return domain.Expiry{}, fmt.Errorf("expiry: want entry, number and time, got %q", domain.Shorten(text))
	}
	from, err := parseEntryID(parts[0])
	if err != nil {
		return domain.Expiry{}, fmt.Errorf("expiry: %w", err)
	}
	var n [2]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(parts[1+i], 10, 64); err != nil {
			return domain.Expiry{}, fmt.Errorf("expiry: %w", err)
		}
	}
	return domain.Expiry{From: from, To: n[0], At: fromMicros(n[1])}, nil
}

// attemptText formats an attempt: the entry, the number, the start time, the duration in microseconds,
// the status and the error.
func attemptText(a *domain.Attempt) string {
	return fmt.Sprintf("%s %d %d %d %d %s", a.Entry, a.Number, toMicros(a.Began), a.Took.Microseconds(), a.Status, a.Error)
}

func parseAttempt(text string) (domain.Attempt, error) {
	parts := strings.SplitN(text, " ", 6)
	if len(parts) != 6 {
		return domain.Attempt{}, fmt.Errorf("attempt: want six fields, got %q", domain.Shorten(text))
	}
	e, err := parseEntryID(parts[0])
	if err != nil {
		return domain.Attempt{}, fmt.Errorf("attempt: %w", err)
	}
	var n [4]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(parts[1+i], 10, 64); err != nil {
			return domain.Attempt{}, fmt.Errorf("attempt: %w", err)
		}
	}
	return domain.Attempt{
		Entry: e, Number: int(n[0]), Began: fromMicros(n[1]), Took: time.Duration(n[2]) * time.Microsecond,
		Status: int(n[3]), Error: parts[5],
	}, nil
}

// markText formats a mark: its time and its numbers, separated by spaces.
func markText(m *domain.Mark) string {
	b := strconv.AppendInt(nil, toMicros(m.At), 10)
	for _, n := range m.Numbers {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return string(b)
}

func parseMark(text string) (domain.Mark, error) {
	var m domain.Mark
	for i, field := range strings.Fields(text) {
		n, err := strconv.ParseInt(field, 10, 64)
		switch {
		case err != nil:
			return m, fmt.Errorf("mark: %w", err)
		case i == 0:
			m.At = fromMicros(n)
		default:
			m.Numbers = append(m.Numbers, n)
		}
	}
	return m, nil
}
