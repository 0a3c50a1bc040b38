package push

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The limits of an append.
const (
	maxInlineCall = 512 << 10 // limit for the bytes of payloads that one call stores in entries
	maxTails      = 4 << 10   // limit for the bytes of all tails in a head, because each append rewrites the head
	maxRound      = 256 << 10 // limit for the bytes of the messages that one round appends
	maxIDs        = 80        // limit for the message ids in one batch, which may have at most 100 operations
)

const appendTimeout = 30 * time.Second

// An appender appends to one stream for all callers in this process. Their messages are queued and
// appended in rounds. Only the caller that leads a round uses the field head.
type appender struct {
	store  *Store
	stream domain.StreamName
	leader *client.Leader[*appending]
	head   *streamHead // the head that was last read or written; nil if unknown
	newest atomic.Pointer[streamHead]
	users  int // guarded by appenders.mu
}

// An appending is the state of one call of Append.
type appending struct {
	messages []domain.Message
	entries  []streamEntry
	bytes    int
	ids      int
	accepted domain.TraceContext // span of the call; zero if no span is stored
	appended []repository.Appended
}

// An appendRound is a set of messages of several callers that are appended together.
type appendRound struct {
	calls     []*appending
	writeID   string
	published int64
	pending   []pendingMessage
	tried     [][]domain.Position // for each attempt, the positions that it chose for the pending messages
	searched  int                 // 1 + the number of the segment before which all segments were searched for the ids; 0 before the search
	sync      []domain.CursorID   // sync cursors in the head to which the messages were appended
}

type pendingMessage struct {
	call  *appending
	index int
}

func (p pendingMessage) message() *domain.Message      { return &p.call.messages[p.index] }
func (p pendingMessage) outcome() *repository.Appended { return &p.call.appended[p.index] }

// Append implements [repository.Streams].
func (s *Store) Append(ctx context.Context, stream domain.StreamName, messages []domain.Message) ([]repository.Appended, error) {
	if err := repository.CheckAppend(messages); err != nil || len(messages) == 0 {
		return nil, err
	}
	a := &appending{messages: messages, appended: make([]repository.Appended, len(messages))}
	if s.opts.StoreTraces {
		a.accepted = domain.TraceContextOf(ctx).Stored()
	}
	inline := 0
	for i := range messages {
		m := &messages[i]
		object := ""
		if n := m.InlineBytes(); n <= domain.MaxInline && inline+n <= maxInlineCall {
			inline += n
		} else {
			// A crash after this write leaves an object that no document refers to. Sweep deletes the
			// object.
			object = objectFolder(s.opts.Clock()) + "/" + s.client.NewID()
			if err := s.content.Put(ctx, object, bytes.NewReader(m.Payload)); err != nil {
				return nil, fmt.Errorf("append to %s: store the payload of message %d: %w", stream, i, err)
			}
		}
		e := makeEntry(m, object)
		a.entries = append(a.entries, e)
		a.bytes += len(client.Encode(e)) + 1
		if m.ID != "" {
			a.ids++
		}
	}
	ap := s.appenders.acquire(stream)
	defer s.appenders.release(ap)
	if err := ap.leader.Do(ctx, a); err != nil {
		return nil, err
	}
	return a.appended, nil
}

func objectFolder(day time.Time) string { return "streams/" + day.UTC().Format(time.DateOnly) }

// runRound appends the queued messages and completes their calls.
func (a *appender) runRound(ctx context.Context) {
	r := &appendRound{writeID: a.store.client.NewID(), published: toMicros(a.store.opts.Clock())}
	size, ids, sent := 0, 0, make(map[string]bool)
	r.calls = a.leader.Take(func(call *appending) bool {
		size, ids = size+call.bytes, ids+call.ids
		for i := range call.messages {
			if id := call.messages[i].ID; id != "" && sent[id] {
				return false // a second message with the same id waits for the next round, which recognizes the duplicate
			}
		}
		for i := range call.messages {
			sent[call.messages[i].ID] = true
		}
		return size == call.bytes || size <= maxRound && ids <= maxIDs
	})
	if len(r.calls) == 0 {
		return
	}
	for _, call := range r.calls {
		for i := range call.messages {
			r.pending = append(r.pending, pendingMessage{call, i})
		}
	}
	c := a.store.client.Begin("append")
	err := c.Retry(ctx, func() error { return a.tryAppend(ctx, c, r) })
	if err != nil {
		a.head = nil
	}
	err = c.Outcome("append to "+a.stream.String(), err)
	for _, call := range r.calls {
		for i := range call.appended {
			call.appended[i].Sync = r.sync
		}
		a.leader.Complete(call, err)
	}
}

// tryAppend makes one attempt at a round. It returns client.ErrStale if another attempt is needed.
func (a *appender) tryAppend(ctx context.Context, c *client.Call, r *appendRound) error {
	base := a.head
	a.head = nil // if this attempt fails, the head is unknown
	if base == nil {
		var err error
		if base, err = a.store.lastHead(ctx, c, a.stream); err != nil {
			return err
		}
		if base == nil { // the stream has no head, so this append creates it
			base = a.store.newHead(a.stream, &streamHead{segment: -1})
		}
	}
	for base.Sealed { // the next segment may be sealed, too
		var err error
		if base, err = a.store.openSegment(ctx, c, a.stream, base); err != nil {
			return err
		}
	}
	r.sync = base.sync // if base is stale, the write is refused, and the next attempt updates r.sync
	if done, err := a.isAppended(ctx, c, r, base); done || err != nil {
		return err
	}
	if err := a.searchEarlierSegments(ctx, c, r, base); err != nil {
		return err
	}
	hasGap := r.settleVersions(base)
	if len(r.pending) == 0 {
		if !hasGap { // a gap may mean that base is stale, so base is not cached
			a.head = base
		}
		return nil
	}
	next, positions, pages, ids := a.planAppend(base, r)
	r.tried = append(r.tried, positions)
	err := a.write(ctx, c, next, pages, ids)
	switch {
	case err == nil:
		r.completeMessages(positions)
		a.head = next
		a.newest.Store(next)
		return nil
	case !client.IsRefused(err):
		return err
	}
	if i := client.FailureOf(err).Operation(); i > 0 && i <= len(ids) {
		left := len(r.pending)
		if err := a.resolveDuplicates(ctx, c, r, base.segment); err != nil {
			return err
		}
		if len(r.pending) < left {
			return a.tryAppend(ctx, c, r)
		}
	}
	return client.ErrStale
}

// write creates or replaces a head. In the same batch, it creates the given pages and documents of
// message ids.
func (a *appender) write(ctx context.Context, c *client.Call, next *streamHead, pages []*streamPage, ids []*idDoc) (err error) {
	// A crash before this write has no effect. If the node crashes after this write, the entries are
	// visible. Head, ids and pages are written in one batch: either all are stored, or none.
	etag := next.etag
	if len(pages) == 0 && len(ids) == 0 {
		next.etag, err = c.Put(ctx, a.store.streams, next.PartitionKey, headID, etag, next)
		return err
	}
	results, err := c.Batch(ctx, a.store.streams, next.PartitionKey, false, func(b *azcosmos.TransactionalBatch) {
		putInBatch(b, headID, etag, next)
		for _, d := range ids {
			putInBatch(b, d.ID, "", d)
		}
		for _, p := range pages {
			putInBatch(b, p.ID, "", p)
		}
	})
	if err == nil {
		next.etag = results[0].ETag
	}
	return err
}

// planAppend returns the next head, with the pending messages, and the positions of these messages. If
// entries no longer fit in the head, it also returns the pages with these entries. ids are the documents
// of the message ids.
func (a *appender) planAppend(base *streamHead, r *appendRound) (next *streamHead, positions []domain.Position, pages []*streamPage, ids []*idDoc) {
	h := *base
	next = &h
	next.WriteID = r.writeID
	next.Priorities = maps.Clone(h.Priorities)
	if next.Priorities == nil {
		next.Priorities = make(map[string]*streamTail)
	}
	runs := make(map[string]*appendRun)
	for _, p := range r.pending {
		m := p.message()
		name := strconv.Itoa(m.Priority)
		if runs[name] == nil {
			t := *base.tailOf(m.Priority)
			t.Runs = append(slices.Clone(t.Runs), appendRun{WriteID: r.writeID, Published: r.published})
			next.Priorities[name] = &t
			runs[name] = &t.Runs[len(t.Runs)-1]
		}
		t, e := next.Priorities[name], p.call.entries[p.index]
		at := domain.Position{EntryID: domain.EntryID{Priority: m.Priority, Number: t.nextNumber()}, Segment: next.segment, Page: t.Page}
		runs[name].addEntry(e, p.call.accepted)
		next.Bytes += int64(len(client.Encode(e)))
		positions = append(positions, at)
		if m.ID != "" {
			digest := m.Digest()
			ids = append(ids, &idDoc{
				ID: idOf(m.ID), PartitionKey: next.PartitionKey, WriteID: r.writeID,
				Position: at.String(), Digest: digest[:], TTL: ceilSeconds(repository.IDRetention),
			})
		}
	}
	for {
		longest, size, all := "", 0, 0
		for name, t := range next.Priorities {
			n := len(client.Encode(t.Runs))
			if len(t.Runs) == 0 {
				continue
			}
			all += n
			if n > size || n == size && name < longest {
				longest, size = name, n
			}
		}
		if all <= maxTails {
			break
		}
		t := *next.Priorities[longest]
		priority, _ := strconv.Atoi(longest)
		pages = append(pages, &streamPage{
			ID: pageID(priority, t.Page), PartitionKey: next.PartitionKey,
			First: t.First, Runs: t.Runs, TTL: ceilSeconds(a.store.opts.Retention),
		})
		t.Page, t.First, t.Runs = t.Page+1, t.nextNumber(), nil
		next.Priorities[longest] = &t
		next.Sealed = next.Sealed || t.Page >= a.store.opts.SegmentPages
	}
	next.Sealed = next.Sealed || next.Bytes >= a.store.opts.SegmentBytes
	return next, positions, pages, ids
}

// settleVersions completes each message whose version differs from the version of the next entry. A
// message with a lower version is already in the stream, even if base is stale. hasGap reports a higher
// version: either base is stale, or the stream lacks a version.
func (r *appendRound) settleVersions(base *streamHead) (hasGap bool) {
	next := make(map[int]int64)
	r.pending = slices.DeleteFunc(r.pending, func(p pendingMessage) bool {
		m := p.message()
		if _, ok := next[m.Priority]; !ok {
			next[m.Priority] = base.tailOf(m.Priority).nextNumber()
		}
		if m.Version == 0 || m.Version-1 == next[m.Priority] {
			next[m.Priority]++
			return false
		}
		*p.outcome() = repository.Appended{
			Position: domain.Position{EntryID: domain.EntryID{Priority: m.Priority, Number: m.Version - 1}},
			Outcome:  repository.VersionOutcome(m.Version, next[m.Priority]),
		}
		hasGap = hasGap || p.outcome().Outcome == repository.AppendGap
		return true
	})
	return hasGap
}

func (r *appendRound) completeMessages(positions []domain.Position) {
	for i, p := range r.pending {
		p.outcome().Position, p.outcome().Published, p.outcome().Accepted = positions[i], fromMicros(r.published), p.call.accepted
	}
	r.pending = nil
}

// isAppended reports whether an attempt with an unknown outcome has appended the messages of r before
// base was written. If base is stale, the next attempt is refused. If base is current, and no attempt has
// succeeded, no attempt can succeed later.
func (a *appender) isAppended(ctx context.Context, c *client.Call, r *appendRound, base *streamHead) (bool, error) {
	for _, positions := range r.tried {
		if done, err := a.hasSucceeded(ctx, c, r, positions, base); err != nil {
			return false, err
		} else if done {
			r.completeMessages(positions)
			return true, nil
		}
	}
	return false, nil
}

// hasSucceeded reports whether the attempt that chose the given positions has appended the messages of r.
// It reads the first entry of each priority, because later appends do not change these entries. One
// priority is not enough: two attempts may have chosen the same position in one priority, and different
// positions in another.
func (a *appender) hasSucceeded(ctx context.Context, c *client.Call, r *appendRound, positions []domain.Position, base *streamHead) (bool, error) {
	seen := make(map[int]bool)
	for _, at := range positions {
		if seen[at.Priority] {
			continue
		}
		seen[at.Priority] = true
		if writeID, err := a.writeIDAt(ctx, c, at, base); err != nil || writeID != r.writeID {
			return false, err
		}
	}
	return true, nil
}

// writeIDAt returns the id of the append that wrote the entry at a position, or "" if there is no entry.
// base is the head of the last segment.
func (a *appender) writeIDAt(ctx context.Context, c *client.Call, at domain.Position, base *streamHead) (string, error) {
	h := base
	if at.Segment != base.segment {
		var err error
		h, err = a.store.readHead(ctx, c, a.stream, at.Segment)
		if err == nil && (h == nil || at.Segment < base.segment && !h.Sealed) {
			err = client.ErrNotYetVisible
		}
		if err != nil {
			return "", err
		}
	}
	t := h.tailOf(at.Priority)
	runs, first := t.Runs, t.First
	if at.Number < first {
		p, err := a.store.readPage(ctx, c, a.stream, at)
		if err == nil && p == nil {
			err = client.ErrNotYetVisible
		}
		if err != nil {
			return "", err
		}
		runs, first = p.Runs, p.First
	}
	if run := runAt(runs, first, at.Number); run != nil {
		return run.WriteID, nil
	}
	return "", nil
}

// resolveDuplicates searches one segment for the ids of the pending messages, and completes the messages
// that were sent before.
func (a *appender) resolveDuplicates(ctx context.Context, c *client.Call, r *appendRound, segment int) error {
	found := make([]*idDoc, len(r.pending))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, p := range r.pending {
		if p.message().ID == "" {
			continue
		}
		g.Go(func() (err error) {
			found[i], err = a.store.findID(gctx, c, segmentKey(a.stream, segment), p.message().ID)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var left []pendingMessage
	for i, p := range r.pending {
		doc := found[i]
		if doc == nil {
			left = append(left, p)
			continue
		}
		if doc.WriteID == r.writeID {
			return client.ErrStale // an attempt has succeeded, which the next attempt detects
		}
		at, err := domain.ParsePosition(doc.Position)
		if err != nil {
			return domain.Errorf(domain.Damaged, "document %s of %s: %w", doc.ID, doc.PartitionKey, err)
		}
		*p.outcome() = repository.Appended{Position: at, Outcome: repository.AppendDuplicate}
		if digest := p.message().Digest(); !bytes.Equal(doc.Digest, digest[:]) {
			p.outcome().Outcome = repository.AppendConflict
		}
	}
	if len(left) < len(r.pending) {
		// The message id existed before the first attempt, so no attempt of this round has succeeded or
		// can succeed later.
		r.pending, r.tried, r.writeID = left, nil, a.store.client.NewID()
	}
	return nil
}

// searchEarlierSegments searches earlier segments for the message ids of r, back to the first segment
// that may contain unexpired ids. Earlier segments are sealed, so no id is added there.
func (a *appender) searchEarlierSegments(ctx context.Context, c *client.Call, r *appendRound, base *streamHead) error {
	hasID := slices.ContainsFunc(r.pending, func(p pendingMessage) bool { return p.message().ID != "" })
	if !hasID || r.searched == base.segment+1 {
		return nil
	}
	now := a.store.opts.Clock()
	for h := base; h.segment > 0 && now.Sub(fromMicros(h.Opened)) < repository.IDRetention; {
		if err := a.resolveDuplicates(ctx, c, r, h.segment-1); err != nil {
			return err
		}
		earlier, err := a.store.readHead(ctx, c, a.stream, h.segment-1)
		if err != nil {
			return err
		}
		if earlier == nil {
			return client.ErrNotYetVisible
		}
		h = earlier
	}
	r.searched = base.segment + 1
	return nil
}

// findID returns the document of a message id, or nil if it does not exist. Where reads may be stale, it
// sends a patch that changes nothing, because the reply shows whether the document exists.
func (s *Store) findID(ctx context.Context, c *client.Call, key, message string) (*idDoc, error) {
	var doc idDoc
	_, err := c.Read(ctx, s.streams, key, idOf(message), &doc)
	if client.IsNotFound(err) && s.account.ReadsMayBeStale() {
		ops := client.NewPatch(idDocument)
		ops.AppendSet("/kind", idDocument.Name)
		// A crash after this write leaves the document unchanged.
		err = c.Patch(ctx, s.streams, key, idOf(message), ops, &doc)
		if client.StatusOf(err) == http.StatusPreconditionFailed { // either the refusal was spurious, or the document has a newer format
			return nil, client.ErrStale
		}
	}
	if client.IsNotFound(err) {
		return nil, nil
	}
	return &doc, err
}
