package delivery

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	// maxVisits is the limit for the watches that are visited at the same time, of all streams.
	maxVisits = 256
	// maxCrowds is the limit for the pages of one stream that have many watches and are visited at
	// the same time. Such a page is in memory while its watches are visited.
	maxCrowds = 16
	// A page has many watches if it has at least manyWatches.
	manyWatches = 64
	// maxMissed is the limit for the visits to a watch without a cursor. After that many visits, the
	// creation of the cursor has ended or failed. The next change visits the watch again.
	maxMissed = 20
	// maxResident is the limit for the watches that are kept in memory after a visit.
	maxResident = 1000
)

// A watchedStream is a stream with watches in a shard. When the stream has new entries, the
// watchedStream visits the watches, page by page. Each visit loads a cursor, unless it is in memory,
// and waits until the cursor has taken the entries and stored its new position.
type watchedStream struct {
	engine *Engine
	shard  int
	topic  *topic

	mu        sync.Mutex
	pages     int
	unlisted  int  // consecutive looks that have not found the stream in the shard
	isRunning bool // a goroutine visits the watches
	again     bool // the goroutine has to visit the watches once more
	unproved  bool // the read of a page may have been stale: the next look reads it again
	ended     bool

	// The following fields belong to the goroutine that visits the watches.
	served   []servedPage
	failures int // consecutive failures of the store
}

// A servedPage is a page whose cursors have taken all entries before a number.
type servedPage struct {
	end      int64
	isMarked bool              // the mark is stored
	isFull   bool              // another page may follow
	isCrowd  bool              // the page has many watches; see manyWatches
	cursors  []domain.CursorID // cursors that have been visited, unless the page is marked
	missed   int               // consecutive visits that have found a watch without a cursor
}

type watchedKey struct {
	shard  int
	stream domain.StreamName
}

// serveWatched serves the watches of a stream in a shard. stream.Pages is zero if the number of
// pages is unknown.
func (e *Engine) serveWatched(shard int, stream repository.WatchedStream) {
	if !e.hasShard(shard) {
		return
	}
	key := watchedKey{shard, stream.Stream}
	e.mu.Lock()
	w := e.watched[key]
	isNew := w == nil
	if isNew && e.state == engineRunning {
		t := e.topicFor(stream.Stream)
		w = &watchedStream{engine: e, shard: shard, topic: t}
		e.watched[key] = w
		t.mu.Lock()
		t.watched[w] = struct{}{}
		t.mu.Unlock()
	}
	e.mu.Unlock()
	if w != nil {
		w.setListed(stream.Pages, isNew)
	}
	if !e.hasShard(shard) { // the shard was lost since the check above
		w.endVisits()
	}
}

// setListed records that the shard lists the watches, and visits those that may have new
// entries.
func (w *watchedStream) setListed(pages int, isNew bool) {
	w.mu.Lock()
	isDue := isNew || pages > w.pages || pages > 0 && w.unproved
	w.pages, w.unlisted = max(w.pages, pages, 1), 0
	if pages > 0 {
		w.unproved = false
	}
	w.mu.Unlock()
	if isDue {
		w.visitSoon()
	}
}

// forgetUnlisted ends a watched stream when its shard was read twice in a row without listing the
// stream: the last watch of the stream was deleted. found has the streams that this read listed.
func (e *Engine) forgetUnlisted(shard int, found []repository.WatchedStream) {
	for _, w := range e.watchedOf(func(w *watchedStream) bool { return w.shard == shard }) {
		if slices.ContainsFunc(found, func(s repository.WatchedStream) bool { return s.Stream == w.topic.stream }) {
			continue
		}
		w.mu.Lock()
		w.unlisted++
		isGone := w.unlisted > 1
		w.mu.Unlock()
		if isGone {
			w.endVisits()
		}
	}
}

// watchedOf returns the watched streams for which isWanted returns true.
func (e *Engine) watchedOf(isWanted func(*watchedStream) bool) []*watchedStream {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*watchedStream
	for _, w := range e.watched {
		if isWanted(w) {
			all = append(all, w)
		}
	}
	return all
}

// endVisits stops the visits of w.
func (w *watchedStream) endVisits() {
	w.mu.Lock()
	w.ended = true
	isRunning := w.isRunning
	w.mu.Unlock()
	if !isRunning {
		w.engine.removeWatched(w)
	}
}

func (e *Engine) removeWatched(w *watchedStream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := watchedKey{w.shard, w.topic.stream}
	if e.watched[key] != w {
		return
	}
	delete(e.watched, key)
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	delete(w.topic.watched, w)
	e.dropIdle(w.topic)
}

// visitSoon makes a goroutine visit the watches that have not taken all entries.
func (w *watchedStream) visitSoon() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended:
	case w.isRunning:
		w.again = true
	case w.engine.spawn(w.run):
		w.isRunning = true
	}
}

func (w *watchedStream) run() {
	for isDue := true; isDue; {
		ctx, e := w.engine.ctx, w.engine
		err := w.visitPages(ctx)
		if err != nil {
			w.failures++
			e.logWarning(ctx, "visit the watches of a resource", err, slog.String("stream", w.topic.stream.String()))
			waitFor(ctx, e.opts.Backoff(w.failures))
		} else {
			w.failures = 0
		}
		w.mu.Lock()
		isDue = !w.ended && ctx.Err() == nil && (w.again || err != nil)
		w.again, w.isRunning = false, isDue
		ended := w.ended
		w.mu.Unlock()
		if ended {
			e.removeWatched(w)
		}
	}
}

// waitFor returns after d, or when ctx ends.
func waitFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// visitPages visits the watches of all pages that have not taken all known entries of the
// stream.
func (w *watchedStream) visitPages(ctx context.Context) error {
	if _, looked := w.topic.knownEnds(); !looked {
		if err := w.engine.readEnd(ctx, w.topic); err != nil {
			return err
		}
	}
	end, _ := w.topic.knownEnds()
	for n := 0; ; n++ {
		w.mu.Lock()
		pages := w.pages
		w.mu.Unlock()
		if w.isEnded() {
			return nil
		}
		if n >= len(w.served) {
			w.served = append(w.served, servedPage{})
		}
		isFull, err := w.visitPage(ctx, n, end[0])
		if err != nil {
			return err
		}
		if n+1 >= pages && !isFull { // the number of pages in the shard may be stale
			return nil
		}
	}
}

// visitPage visits the watches of a page that have not taken all entries before end.
func (w *watchedStream) visitPage(ctx context.Context, n int, end int64) (isFull bool, err error) {
	e, known := w.engine, &w.served[n]
	if known.isMarked && known.end >= end {
		return known.isFull, nil
	}
	if known.isCrowd {
		select {
		case w.topic.crowds <- struct{}{}:
			defer func() { <-w.topic.crowds }()
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	page, err := e.Shards.WatchPage(ctx, w.shard, w.topic.stream, n)
	if domain.KindOf(err) == domain.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	isFull, known.isCrowd = len(page.Cursors) >= repository.WatchPageSize, len(page.Cursors) >= manyWatches
	waiting := page.Cursors
	switch {
	case page.Served >= end:
		waiting = nil
	case known.end >= end:
		waiting = withoutCursors(waiting, known.cursors)
	}
	missing, isEnded, err := w.visitWatches(ctx, waiting, end)
	if err != nil || isEnded {
		return isFull, err
	}
	*known = servedPage{end: end, isFull: isFull, isCrowd: known.isCrowd, cursors: withoutCursors(page.Cursors, missing), missed: known.missed}
	if len(missing) > 0 { // the missing cursors are being created, or their creation was interrupted
		if known.missed++; known.missed <= maxMissed {
			w.visitAtNextLook()
		}
		return isFull, nil
	}
	known.missed = 0
	if len(page.Cursors) < e.opts.Marked {
		if len(waiting) > 0 { // the page that was read may be stale, so that a new watch is missing
			w.visitAtNextLook()
		}
		return isFull, nil
	}
	if page.Served < end {
		// MarkServed fails if watches were added since the page was read. The next round visits
		// them.
		if err := e.Shards.MarkServed(ctx, w.shard, w.topic.stream, n, page.Version, end); err != nil {
			return isFull, err
		}
	}
	known.isMarked, known.cursors = true, nil
	return isFull, nil
}

// withoutCursors returns the cursors that are in list a but not in list b.
func withoutCursors(a, b []domain.CursorID) []domain.CursorID {
	known := make(map[domain.CursorID]struct{}, len(b))
	for _, id := range b {
		known[id] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(a), func(id domain.CursorID) bool {
		_, isKnown := known[id]
		return isKnown
	})
}

// visitAtNextLook makes the next look that finds the stream in the shard read the pages again.
func (w *watchedStream) visitAtNextLook() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unproved = true
}

// visitWatches visits watches, a limited number at a time. When all watches with a cursor have
// taken the entries before end, it returns the watches without a cursor. isEnded is true if
// endVisits has stopped the visits earlier.
func (w *watchedStream) visitWatches(ctx context.Context, cursors []domain.CursorID, end int64) (missing []domain.CursorID, isEnded bool, err error) {
	e := w.engine
	for len(cursors) > 0 {
		if w.isEnded() || e.isStopping() {
			return nil, true, nil
		}
		type visited struct {
			id     domain.CursorID
			result visitResult
		}
		all := make(chan visited, len(cursors))
		for _, id := range cursors {
			select {
			case e.visits <- struct{}{}:
			case <-ctx.Done():
				return nil, false, ctx.Err()
			}
			e.visitWatch(repository.ShardEntry{Cursor: id, Stream: w.topic.stream}, &visit{end: end, ended: func(r visitResult) {
				<-e.visits
				all <- visited{id, r}
			}})
		}
		var again []domain.CursorID
		for range cursors {
			select {
			case v := <-all:
				switch v.result {
				case visitServed:
				case visitMissing:
					missing = append(missing, v.id)
				case visitAbandoned:
					again = append(again, v.id)
				}
			case <-ctx.Done():
				return nil, false, ctx.Err()
			}
		}
		cursors = again
	}
	return missing, false, nil
}

// isEnded reports whether endVisits was called.
func (w *watchedStream) isEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended || !w.engine.hasShard(w.shard)
}
