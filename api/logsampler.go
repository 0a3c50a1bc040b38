package api

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Refused requests are sampled, because their log lines could fill the disk. In each refusalWindow,
// at most maxRefusalLines requests of each kind are logged. The metrics count all requests.
const (
	maxRefusalLines = 20
	refusalWindow   = 10 * time.Second
)

// A refusalKind identifies refused requests that are sampled together.
type refusalKind struct {
	route  string
	status int
}

// A logSampler decides which refused requests are logged. It is safe for concurrent use.
type logSampler struct {
	mu    sync.Mutex
	kinds map[refusalKind]*refusals // limited, because the numbers of routes and statuses are
}

// refusals counts the refused requests of one kind in one window.
type refusals struct {
	began    time.Time
	logged   int
	unlogged int
}

// admitLine reports whether a refused request of the given kind is logged.
func (s *logSampler) admitLine(kind refusalKind, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[kind]
	if k == nil {
		k = &refusals{began: now}
		if s.kinds == nil {
			s.kinds = make(map[refusalKind]*refusals)
		}
		s.kinds[kind] = k
	}
	if k.logged == maxRefusalLines {
		k.unlogged++
		return false
	}
	k.logged++
	return true
}

// unloggedRefusals is the number of refused requests of one kind that were not logged.
type unloggedRefusals struct {
	refusalKind
	n int
}

// endWindows ends the windows whose time has passed, or all windows if isLast is true. It returns
// the numbers of requests that were not logged.
func (s *logSampler) endWindows(now time.Time, isLast bool) []unloggedRefusals {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []unloggedRefusals
	for kind, k := range s.kinds {
		if !isLast && now.Sub(k.began) < refusalWindow {
			continue
		}
		delete(s.kinds, kind)
		if k.unlogged > 0 {
			found = append(found, unloggedRefusals{kind, k.unlogged})
		}
	}
	slices.SortFunc(found, func(a, b unloggedRefusals) int { return cmp.Or(cmp.Compare(a.route, b.route), a.status-b.status) })
	return found
}
