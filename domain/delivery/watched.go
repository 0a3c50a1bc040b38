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
	// maxCrowds is the limit for the pages of a stream with many watches that are visited at the same time.
	// Each is in memory meanwhile.
	maxCrowds = 16
	// manyWatches is how many watches a page has at least for that.
	manyWatches = 64
	// maxMissed is the limit for the visits to a watch without a cursor: its creation has ended
	// before that, and the next change visits it again.
	maxMissed = 20
	// maxResident is the limit for the watches that are kept in memory after a visit.
	maxResident = 1000
)

// A watched is a stream of which a shard has watches. When the stream has new entries, it visits the
// watches, page by page: each visit loads a cursor, unless that is in memory, and waits until it has taken
// and stored them.
type watched struct {
	engine *Engine
	shard  int
	topic  *topic

	mu        sync.Mutex
	pages     int
	unlisted  int  // looks in a row that have not found it
	isRunning bool // a goroutine visits
	again     bool // it is to begin again
	unproved  bool // a page was read that may have been old: the next look reads it again
	ended     bool

	// The rest belongs to that goroutine.
	served   []servedPage
	failures int // of the store, in a row
}

// A servedPage is a page whose cursors have taken what is before a number.
type servedPage struct {
	end      int64
	isMarked bool              // the store knows
	isFull   bool              // there may be another one
	isCrowd  bool              // it has many watches
	cursors  []domain.CursorID // those that have been visited, unless it is marked
	missed   int               // visits in a row that have found a watch without a cursor
}

type watchedKey struct {
	shard  int
	stream domain.StreamName
}

// serveWatched serves the watches of a stream in a shard. Zero pages are an unknown number.
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
		w = &watched{engine: e, shard: shard, topic: t}
		e.watched[key] = w
		t.mu.Lock()
		t.watched[w] = struct{}{}
		t.mu.Unlock()
	}
	e.mu.Unlock()
	if w != nil {
		w.setListed(stream.Pages, isNew)
	}
	if !e.hasShard(shard) { // it was given to another node meanwhile
		w.endVisits()
	}
}

// setListed records that the shard lists the watches, and visits those that may have new
// entries.
func (w *watched) setListed(pages int, isNew bool) {
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

// forgetUnlisted ends the watched streams of a shard that two looks in a row have not found: their last
// watch was deleted.
func (e *Engine) forgetUnlisted(shard int, found []repository.WatchedStream) {
	for _, w := range e.watchedOf(func(w *watched) bool { return w.shard == shard }) {
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

// watchedOf returns the watched streams that are wanted.
func (e *Engine) watchedOf(isWanted func(*watched) bool) []*watched {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*watched
	for _, w := range e.watched {
		if isWanted(w) {
			all = append(all, w)
		}
	}
	return all
}

// endVisits stops the visits of w.
func (w *watched) endVisits() {
	w.mu.Lock()
	w.ended = true
	isRunning := w.isRunning
	w.mu.Unlock()
	if !isRunning {
		w.engine.removeWatched(w)
	}
}

func (e *Engine) removeWatched(w *watched) {
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

// visitSoon visits the watches that have not taken everything.
func (w *watched) visitSoon() {
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

func (w *watched) run() {
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

// visitPages visits the watches of all pages that have not taken everything that the stream is known to
// have.
func (w *watched) visitPages(ctx context.Context) error {
	if _, looked := w.topic.knownEnds(); !looked {
		if err := w.engine.lookAt(ctx, w.topic); err != nil {
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
		if n+1 >= pages && !isFull { // the listed number of pages may be old
			return nil
		}
	}
}

// visitPage visits the watches of a page that have not taken everything before end.
func (w *watched) visitPage(ctx context.Context, n int, end int64) (isFull bool, err error) {
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
	if len(missing) > 0 { // they are being created, or their creation was interrupted
		if known.missed++; known.missed <= maxMissed {
			w.visitAtNextLook()
		}
		return isFull, nil
	}
	known.missed = 0
	if len(page.Cursors) < e.opts.Marked {
		if len(waiting) > 0 { // the page may be a stale read, in which a watch is missing
			w.visitAtNextLook()
		}
		return isFull, nil
	}
	if page.Served < end {
		// It fails if watches were added meanwhile, and they are visited then.
		if err := e.Shards.MarkServed(ctx, w.shard, w.topic.stream, n, page.Version, end); err != nil {
			return isFull, err
		}
	}
	known.isMarked, known.cursors = true, nil
	return isFull, nil
}

// withoutCursors returns the cursors of a that b does not have.
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
func (w *watched) visitAtNextLook() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unproved = true
}

// visitWatches visits watches, some at a time. When all others have taken the entries before
// end, it returns the watches without a cursor. isEnded reports that it has stopped earlier
// because visits have ended.
func (w *watched) visitWatches(ctx context.Context, cursors []domain.CursorID, end int64) (missing []domain.CursorID, isEnded bool, err error) {
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

// isEnded reports whether visits have ended.
func (w *watched) isEnded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended || !w.engine.hasShard(w.shard)
}
