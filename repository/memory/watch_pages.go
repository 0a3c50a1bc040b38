package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var _ repository.WatchPages = (*Cursors)(nil)

// A watchedStream identifies a stream that has watches in a shard.
type watchedStream struct {
	shard  int
	stream domain.StreamName
}

// addToPage adds the cursor of a watch to the last page. If this page is full, it adds the cursor to a
// new page.
func (s *Cursors) addToPage(id domain.CursorID, standing *domain.Standing) {
	key := watchedStream{repository.ShardOf(id), standing.Stream}
	pages := s.pages[key]
	if n := len(pages); n == 0 || len(pages[n-1].Cursors) >= repository.WatchPageSize {
		pages = append(pages, &repository.WatchPage{Served: standing.Position(0).Number})
		s.pages[key] = pages
	}
	page := pages[len(pages)-1]
	page.Cursors = append(page.Cursors, id)
	page.Served = min(page.Served, standing.Position(0).Number)
	s.renewVersion(page)
}

// removeFromPage removes the cursor of a watch from its page. If the only page of the stream is then
// empty, removeFromPage also removes the stream.
func (s *Cursors) removeFromPage(id domain.CursorID, stream domain.StreamName) {
	key := watchedStream{repository.ShardOf(id), stream}
	for _, page := range s.pages[key] {
		if i := slices.Index(page.Cursors, id); i >= 0 {
			page.Cursors = slices.Delete(page.Cursors, i, i+1)
			s.renewVersion(page)
		}
	}
	if pages := s.pages[key]; len(pages) == 1 && len(pages[0].Cursors) == 0 {
		delete(s.pages, key)
	}
}

// renewVersion assigns the next version to a page.
func (s *Cursors) renewVersion(page *repository.WatchPage) {
	s.pageVersion++
	page.Version = repository.WatchPageVersion(strconv.Itoa(s.pageVersion))
}

// watchedStreams returns the streams with watches in a shard.
func (s *Cursors) watchedStreams(shard int) []repository.WatchedStream {
	var all []repository.WatchedStream
	for key, pages := range s.pages {
		if key.shard == shard {
			all = append(all, repository.WatchedStream{Stream: key.stream, Pages: len(pages)})
		}
	}
	slices.SortFunc(all, func(a, b repository.WatchedStream) int { return cmp.Compare(a.Stream.String(), b.Stream.String()) })
	return all
}

func (s *Cursors) findPage(shard int, stream domain.StreamName, page int) (*repository.WatchPage, error) {
	pages := s.pages[watchedStream{shard, stream}]
	if page >= len(pages) {
		return nil, domain.Errorf(domain.NotFound, "there is no page %d of the watches of %s in shard %d", page, stream, shard)
	}
	return pages[page], nil
}

// WatchPage implements [repository.WatchPages].
func (s *Cursors) WatchPage(ctx context.Context, shard int, stream domain.StreamName, page int) (repository.WatchPage, error) {
	if err := ctx.Err(); err != nil {
		return repository.WatchPage{}, fmt.Errorf("watch page: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.findPage(shard, stream, page)
	if err != nil {
		return repository.WatchPage{}, err
	}
	clone := *found
	clone.Cursors = slices.Clone(found.Cursors)
	return clone, nil
}

// MarkServed implements [repository.WatchPages].
func (s *Cursors) MarkServed(ctx context.Context, shard int, stream domain.StreamName, page int, version repository.WatchPageVersion, served int64) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("mark served: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.findPage(shard, stream, page)
	switch {
	case err != nil:
		return err
	case found.Version != version:
		return domain.Errorf(domain.Conflict, "page %d of the watches of %s in shard %d has changed", page, stream, shard)
	}
	found.Served = max(found.Served, served)
	return nil
}
