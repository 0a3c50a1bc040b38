package survey

import (
	"context"
	"maps"
	"slices"

	"github.com/messagehub/messagehub/cosmos/client"
)

// flushIfDue flushes if the last flush is older than flushAfter, or than beatAfter if no line has
// changed. It also flushes if maxPending lines have changed.
func (s *Survey) flushIfDue(ctx context.Context) error {
	after := beatAfter
	if len(s.own.pending) > 0 {
		after = flushAfter
	}
	if len(s.own.pending) < maxPending && s.opts.Clock().Sub(s.own.flushed) < after {
		return nil
	}
	return s.flush(ctx)
}

// flush stores the changed lines and the position up to which they were read. If it needs several
// batches, only the last batch stores the position. So after a crash between two batches, the stored
// lines may be newer than the position.
func (s *Survey) flush(ctx context.Context) error {
	o := &s.own
	var p packer
	changed := slices.SortedFunc(maps.Keys(o.pending), compareActors)
	for _, recipient := range changed { // sorted, because the compressed size depends on the order
		p.add(recipient.String(), s.table.mailboxRecord(recipient))
	}
	parts := p.allParts()
	for len(parts) > batchParts {
		if err := s.appendToLog(ctx, parts[:batchParts], false); err != nil {
			return err
		}
		parts = parts[batchParts:]
	}
	if err := s.appendToLog(ctx, parts, true); err != nil {
		return err
	}
	clear(o.pending)
	return nil
}

// appendToLog adds documents to the log.
func (s *Survey) appendToLog(ctx context.Context, packed [][]byte, isLast bool) error {
	next := s.nextState()
	if isLast {
		s.own.setPosition(next)
	}
	var add []*linesPart
	for _, lines := range packed {
		next.Last++
		next.LogBytes += len(lines)
		add = append(add, newPart(logID(next.Last), lines))
	}
	if err := s.writeState(ctx, next, add); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = replica{series: next.Series, last: next.Last, isLoaded: true}
	return nil
}

// A compaction is a snapshot that is being written.
type compaction struct {
	id      string
	parts   [][]byte
	written int
	upTo    int64 // number of the last log document whose lines are in the snapshot
	bytes   int
}

// snapshotPerRound is the limit for the parts of a snapshot that a round writes, so that a snapshot does
// not delay the feeds.
const snapshotPerRound = 16

// compact writes some parts of a new snapshot if the log is as large as the last snapshot. When all parts
// are written, it makes the new snapshot valid, and schedules the replaced documents for removal.
func (s *Survey) compact(ctx context.Context) error {
	o := &s.own
	if o.compact == nil {
		logged := o.state.Last - o.state.First + 1
		if logged < compactFrom && o.state.LogBytes < max(o.state.SnapshotBytes, minSnapshot) || len(o.pending) > 0 || o.walk != nil {
			return nil
		}
		o.compact = s.beginSnapshot()
	}
	for n := 0; n < snapshotPerRound && o.compact.written < len(o.compact.parts); n++ {
		i := o.compact.written
		// A crash after this write leaves a part of a snapshot that the state does not name. The next
		// node that surveys removes the part.
		id := snapshotID(o.compact.id, i)
		if _, err := s.beginCall().Put(ctx, s.lines, partition, id, "", newPart(id, o.compact.parts[i])); err != nil && !client.IsRefused(err) {
			o.garbage = append(o.garbage, o.compact.writtenIDs()...)
			o.compact = nil
			return client.Classify("store lines of the survey", err)
		}
		o.compact.written++
		if err := s.flushIfDue(ctx); err != nil {
			return err
		}
	}
	if o.compact.written < len(o.compact.parts) {
		return nil
	}
	return s.endSnapshot(ctx)
}

// beginSnapshot packs all lines. All changed lines must have been flushed before.
func (s *Survey) beginSnapshot() *compaction {
	c := &compaction{id: s.client.NewID(), upTo: s.own.state.Last}
	var p packer
	for recipient, record := range s.table.allRecords() {
		p.add(recipient, record)
	}
	c.parts = p.allParts()
	for _, part := range c.parts {
		c.bytes += len(part)
	}
	return c
}

// writtenIDs returns the ids of the parts that were written.
func (c *compaction) writtenIDs() []string {
	var ids []string
	for i := range c.written {
		ids = append(ids, snapshotID(c.id, i))
	}
	return ids
}

// endSnapshot stores a state that names the new snapshot, and schedules the replaced documents for
// removal.
func (s *Survey) endSnapshot(ctx context.Context) error {
	o := &s.own
	done, before := o.compact, o.state
	next := s.nextState()
	next.Snapshot, next.Parts, next.SnapshotBytes = done.id, len(done.parts), done.bytes
	next.First = done.upTo + 1
	next.LogBytes = 0 // the remaining log documents are small, so their size is not counted
	if err := s.writeState(ctx, next, nil); err != nil {
		return err
	}
	o.compact = nil
	for i := range before.Parts {
		o.garbage = append(o.garbage, snapshotID(before.Snapshot, i))
	}
	for n := before.First; n <= done.upTo; n++ {
		o.garbage = append(o.garbage, logID(n))
	}
	return nil
}
