package api

import (
	"context"
	"net/http"
	"time"
)

// ProblemStatuses returns the status of each problem type.
func ProblemStatuses() map[string]int {
	all := make(map[string]int)
	for p, row := range problems {
		all[string(p)] = row.status
	}
	return all
}

// A Problem is a row of the table of problems.
type Problem struct {
	Status        int
	Title         string
	HasRetryAfter bool
}

// Problems returns the table of problems by type. Every problem with status 429 has Retry-After;
// where the table lacks it, the handler sets it.
func Problems() map[string]Problem {
	all := make(map[string]Problem)
	for p, row := range problems {
		all[string(p)] = Problem{Status: row.status, Title: row.title, HasRetryAfter: row.retry || row.status == http.StatusTooManyRequests}
	}
	return all
}

// MaxLoginAddresses is the maximum number of addresses whose failed logins are counted.
const MaxLoginAddresses = maxAddresses

// LoginAddresses returns the number of addresses whose failed logins s counts.
func LoginAddresses(s *Server) int { return len(s.logins.addresses) }

// A MemoryPool is a pool in which requests wait up to 2 s. Its minimum rate is 1 KB/s.
type MemoryPool struct{ pool *memoryPool }

// NewMemoryPool returns a pool that calls onCut for each client that it disconnects.
func NewMemoryPool(room, share int64, onCut func()) MemoryPool {
	return MemoryPool{newMemoryPool(room, share, memoryLimits{timeout: 2 * time.Second, rate: kilobyte, onCut: onCut})}
}

// Open returns a hold that belongs to owner. The pool cannot interrupt the hold.
func (p MemoryPool) Open(owner string) MemoryHold { return MemoryHold{p.pool.open(owner, func() {})} }

// A MemoryHold is memory of a MemoryPool that one request holds.
type MemoryHold struct{ hold *memoryHold }

// Acquire adds n bytes to the hold.
func (h MemoryHold) Acquire(ctx context.Context, n int64) error { return h.hold.acquire(ctx, n) }

// BeginTransfer begins a transfer.
func (h MemoryHold) BeginTransfer() { h.hold.beginTransfer() }

// MaxBuckets is the maximum number of clients that have a bucket of requests.
const MaxBuckets = maxBuckets

// Buckets returns the number of clients that have a bucket.
func Buckets(s *Server) int { return len(s.requests.clients) }

// RightsOf returns the roles that a route requires, and whether the table of rights has a row for
// it.
func RightsOf(method, route string) (roles []string, hasRow bool) {
	row, hasRow := rightsOf(method, route)
	for _, role := range row {
		roles = append(roles, string(role))
	}
	return roles, hasRow
}

// RightsCount returns the number of rows in the table of rights.
func RightsCount() int { return len(rights) }
