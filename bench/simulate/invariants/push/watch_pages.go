package push

import (
	"slices"
	"strings"
)

// A watchPage is a document that contains cursors of watches.
type watchPage struct {
	Cursors []string `json:"cursors"`
	Served  int64    `json:"served"`
}

// isWatchPages reports whether a partition contains the watch pages of a stream in a shard.
func isWatchPages(partition string) bool {
	shard, isOfShard := strings.CutPrefix(partition, "|shard|")
	return isOfShard && strings.Contains(shard, "|")
}

const watchedPrefix = "watched|"

// noteWatchedStreams records which streams a shard lists as watched.
func (o *Observer) noteWatchedStreams(c partitionChange) {
	partition := c.partition + "|" + strings.TrimPrefix(c.id, watchedPrefix)
	if c.json != nil {
		o.watched[partition] = true
		return
	}
	delete(o.watched, partition)
	if len(o.pages[partition]) > 0 {
		o.addViolation("P7", c, "the shard does not record watches of a stream, but there are pages of them")
	}
}

// checkWatchPage compares a page with the cursors that the page lists.
func (o *Observer) checkWatchPage(c partitionChange) {
	of := o.pages[c.partition]
	if of == nil {
		of = make(map[string]*watchPage)
		o.pages[c.partition] = of
	}
	before, next := of[c.id], &watchPage{}
	if c.json == nil {
		delete(of, c.id)
	} else {
		if !o.decodeInto(c, next) {
			return
		}
		of[c.id] = next
	}
	if before == nil {
		return
	}
	for _, id := range before.Cursors {
		if known := o.cursors[id]; known != nil && !known.doc.Retired && !slices.Contains(next.Cursors, id) {
			o.addViolation("P7", c, "cursor %s has left its page", id)
		}
	}
	if next.Served <= before.Served {
		return
	}
	o.markReached("a page of watches was served")
	for _, id := range next.Cursors {
		if known := o.cursors[id]; known != nil && !known.doc.Retired {
			o.checkListed(id, known, next, c)
		}
	}
}

// checkListed checks that the shard lists a watch that needs an entry. A watch needs an entry if its page was served
// beyond the position of its cursor, or beyond an outstanding delivery.
func (o *Observer) checkListed(id string, known *cursor, page *watchPage, c partitionChange) {
	if o.shards[shardOf(id)][id] != nil {
		return
	}
	if page == nil {
		o.addViolation("P7", c, "cursor %s is in no page and has no entry", id)
		return
	}
	if known.at[0] < page.Served {
		o.addViolation("P7", c, "cursor %s has taken the entries before %d, its page was served up to %d, but it has no entry of its own", id, known.at[0], page.Served)
	}
	for e := range known.outstanding {
		if e.Number < page.Served {
			o.addViolation("P7", c, "%s of cursor %s is outstanding, its page was served up to %d, but the cursor has no entry of its own", e, id, page.Served)
		}
	}
}

// pageOf returns the page of the cursor of a watch, or nil.
func (o *Observer) pageOf(id, stream string) *watchPage {
	partition := shardOf(id) + "|" + stream
	if !o.watched[partition] {
		return nil
	}
	for _, page := range o.pages[partition] {
		if slices.Contains(page.Cursors, id) {
			return page
		}
	}
	return nil
}

func isWatch(cursor string) bool { return strings.HasPrefix(cursor, "w|") }

// checkUnlisted checks the removal of the entry that a watch has in its shard.
func (o *Observer) checkUnlisted(c partitionChange, known *cursor) {
	if len(known.outstanding) > 0 {
		o.addViolation("P7", c, "the entry of a cursor was removed, but %d deliveries are outstanding", len(known.outstanding))
	}
	delete(o.shards[c.partition], c.id)
	o.checkListed(c.id, known, o.pageOf(c.id, known.doc.Stream), c)
	o.markReached("a watch was unlisted")
}
