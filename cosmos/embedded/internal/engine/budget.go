package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/physics"
)

// Budgets returns the budgets that a request is charged to. If at is nil, the request reads all physical partitions.
// The partitions of a container have equal budgets; containers with shared throughput share one budget.
func (e *Engine) Budgets(c *Container, at *Range) []physics.Budget {
	offer := c.offer
	if offer == nil {
		b := physics.Budget{Key: fmt.Sprint("d", c.parent), PerSecond: int64(defaultThroughput * requestUnit)}
		if db, err := e.Database(c.Database); err == nil && db.offer != nil {
			b.PerSecond = int64(db.offer.Throughput()) * int64(requestUnit)
		}
		return []physics.Budget{b}
	}
	share := int64(offer.Throughput()) * int64(requestUnit) / int64(len(c.ranges))
	budget := func(r *Range) physics.Budget {
		return physics.Budget{Key: fmt.Sprint("c", c.number, "/", r.ID), PerSecond: share}
	}
	if at != nil {
		return []physics.Budget{budget(at)}
	}
	all := make([]physics.Budget, len(c.ranges))
	for i := range c.ranges {
		all[i] = budget(&c.ranges[i])
	}
	return all
}

// Autoscale returns the maximum request units per second of a container, or of the database whose throughput it shares.
// It returns 0 without autoscale.
func (e *Engine) Autoscale(c *Container) int {
	offer := c.offer
	if db, err := e.Database(c.Database); offer == nil && err == nil {
		offer = db.offer
	}
	if offer == nil {
		return 0
	}
	return offer.Autoscale
}

// splitFullRanges splits ranges whose documents exceed the size limit.
func (e *Engine) splitFullRanges(ctx context.Context, c *Container) error {
	if e.sizeOfContainer(c.number).Load() <= e.rangeBytes*int64(len(c.ranges)) {
		return nil
	}
	return e.changeDatabase(ctx, c.Database, func(tx disk.Tx, version uint64) (*Database, error) {
		db, err := e.Database(c.Database)
		if err != nil {
			return nil, err
		}
		now := db.containers[c.ID]
		if now == nil || now.number != c.number || e.countRanges(now) <= len(now.ranges) {
			return db, nil
		}
		changed := *now
		changed.ranges, changed.nextRange = splitRanges(now.ranges, e.countRanges(now), now.nextRange, now.keyVersion, version)
		putRecord(tx, containerKey(db.ID, now.ID), changed.toRecord())
		return db.withContainer(&changed), nil
	})
}

// maxRememberedCommits is the maximum number of commits by which a read may be stale.
const maxRememberedCommits = 64

// noteCommit records the time of a commit for viewState, if Options.Lag is set.
func (e *Engine) noteCommit() {
	if e.lag == nil {
		return
	}
	e.lagging.Lock()
	defer e.lagging.Unlock()
	e.commits = append(e.commits, e.clock())
	if len(e.commits) > maxRememberedCommits {
		e.commits = append(e.commits[:0:0], e.commits[len(e.commits)-maxRememberedCommits:]...)
	}
}

// commitsSince returns how many recorded commits are later than at.
func (e *Engine) commitsSince(at time.Time) (n int) {
	e.lagging.Lock()
	defer e.lagging.Unlock()
	for i := len(e.commits) - 1; i >= 0 && e.commits[i].After(at); i-- {
		n++
	}
	return n
}
