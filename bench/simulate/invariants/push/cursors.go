package push

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// A cursor is the known state of a cursor.
type cursor struct {
	doc         cursorDoc
	begin       map[int]int64    // number of the first entry of the cursor, by priority
	at          map[int]int64    // number of the first entry after the cursor's position, by priority
	outstanding map[Entry]bool   // entries that are open, that the consumer has fetched, or that wait for a retry
	retries     map[Entry]*retry // retries that are not dead letters
	dead        map[Entry]*retry
	fetched     map[Entry]bool // entries of dequeued bundles; immutable
	takeovers   int
	revived     int // number of dead letters that the last commit made outstanding again
}

type cursorDoc struct {
	Stream    string   `json:"stream"`
	At        []string `json:"at"`
	Open      []string `json:"open"`
	Held      []string `json:"held"`
	Triggered int64    `json:"triggered"`
	Filtered  int64    `json:"filtered"`
	Delivered int64    `json:"delivered"`
	Errored   int64    `json:"errored"`
	Cancelled int64    `json:"cancelled"`
	Expired   int64    `json:"expired"`
	Attempts  int64    `json:"attempts"`
	Retries   int      `json:"retries"`
	State     string   `json:"state"`
	Retired   bool     `json:"retired"`
	By        string   `json:"by"`
	Claim     string   `json:"claim"`
	Followed  int      `json:"followed"`
	Replay    int      `json:"replayNumber"`
	Ended     string   `json:"replayState"`
	Matched   int64    `json:"replayMatched"`

	HeldID      string   `json:"heldId"`
	HeldRetries []string `json:"heldRetries"`
	Dequeued    []string `json:"dequeued"`
}

type retry struct {
	Kind     string   `json:"kind"`
	Position string   `json:"position"`
	Attempts int      `json:"attempts"`
	Due      int64    `json:"due"`
	Replay   int      `json:"replay"` // number of the last request that replayed the entry
	History  []string `json:"history"`
}

// shardOf returns the partition of the shard of a cursor.
func shardOf(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // writing to a hash never fails
	return fmt.Sprintf("|shard|%d", h.Sum32()%64)
}

func entryOf(stream, position string) (e Entry, err error) {
	var segment, page int
	e.Stream = stream
	_, err = fmt.Sscanf(position, "%d.%d.%d.%d", &e.Priority, &e.Number, &segment, &page)
	return e, err
}

// checkCursor checks a commit to the partition of a cursor.
func (o *Observer) checkCursor(id string, changes []partitionChange) {
	var main *partitionChange
	for i := range changes {
		if changes[i].id == "cursor" {
			main = &changes[i]
		}
	}
	before := o.cursors[id]
	if main == nil {
		for _, c := range changes {
			if strings.HasPrefix(c.id, "retry|") && (c.json != nil || before == nil || !o.isDeadLetter(before, c)) {
				o.addViolation("P6", c, "a retry changed without its cursor")
			}
		}
		return
	}
	if main.json == nil {
		if before == nil || !before.doc.Retired {
			o.addViolation("P1", *main, "a cursor was removed")
		}
		delete(o.cursors, id)
		return
	}
	next := &cursor{begin: make(map[int]int64), at: make(map[int]int64), outstanding: make(map[Entry]bool), retries: make(map[Entry]*retry), dead: make(map[Entry]*retry)}
	if !o.decodeInto(*main, &next.doc) {
		return
	}
	if next.doc.Retired && (next.doc.State != "closed" || len(next.doc.Open)+len(next.doc.Held)+next.doc.Retries > 0) {
		o.addViolation("P1", *main, "a cursor was retired that is not closed, or has outstanding deliveries")
	}
	if before != nil && before.doc.Retired && !next.doc.Retired {
		o.addViolation("P1", *main, "a retired cursor was revived")
	}
	if before == nil {
		before = &cursor{at: make(map[int]int64), doc: cursorDoc{Stream: next.doc.Stream}}
		switch {
		case isWatch(id) && o.pageOf(id, next.doc.Stream) == nil:
			o.addViolation("P7", *main, "no page has the cursor")
		case !isWatch(id) && o.shards[shardOf(id)][id] == nil:
			o.addViolation("P7", *main, "the shard does not list the cursor")
		}
		o.checkBegin(id, next, *main)
		for _, text := range next.doc.At { // a new cursor begins at its positions
			if e, err := entryOf(next.doc.Stream, text); err == nil {
				before.at[e.Priority], next.begin[e.Priority] = e.Number, e.Number
			}
		}
	} else {
		next.begin = before.begin
	}
	o.readCursor(next, before, *main, changes)
	o.compareCursors(id, before, next, *main)
	o.cursors[id] = next
}

// isDeadLetter reports whether a removed document was a dead letter. Dead letters expire.
func (o *Observer) isDeadLetter(of *cursor, c partitionChange) bool {
	for e := range of.dead {
		if c.id == fmt.Sprintf("retry|%d|%016d", e.Priority, e.Number) {
			return true
		}
	}
	return false
}

// readCursor adds the state in the documents of a commit to next.
func (o *Observer) readCursor(next, before *cursor, main partitionChange, changes []partitionChange) {
	parse := func(text string) Entry {
		e, err := entryOf(next.doc.Stream, text)
		if err != nil {
			o.addViolation("layout", main, "position %q: %v", text, err)
		}
		return e
	}
	for _, text := range next.doc.At {
		e := parse(text)
		next.at[e.Priority] = e.Number
	}
	for e, r := range before.retries {
		next.retries[e] = r
	}
	for e, r := range before.dead {
		next.dead[e] = r
	}
	for _, c := range changes {
		if !strings.HasPrefix(c.id, "retry|") {
			continue
		}
		e := Entry{Stream: next.doc.Stream}
		if _, err := fmt.Sscanf(c.id, "retry|%d|%d", &e.Priority, &e.Number); err != nil {
			o.addViolation("layout", c, "%v", err)
			continue
		}
		if c.json == nil {
			delete(next.retries, e)
			continue
		}
		r := &retry{}
		if !o.decodeInto(c, r) {
			continue
		}
		if r.Kind == "dead" {
			next.dead[e] = r
			delete(next.retries, e)
			continue
		}
		delete(next.dead, e)
		failed := 0
		if old := before.retries[e]; old != nil {
			failed = old.Attempts
		}
		if old := before.retries[e]; r.Replay > 0 && (old == nil || old.Replay != r.Replay) {
			failed = r.Attempts - 1 // a replay resets the number of attempts
			if r.Attempts != 0 {
				o.addViolation("P8", c, "it is replayed with %d attempts", r.Attempts)
			}
			if dead := before.dead[e]; dead != nil {
				if !slices.Equal(dead.History, r.History) {
					o.addViolation("P8", c, "it is replayed with another history than %q", dead.History)
				}
				next.revived++
				o.markReached("a dead letter was replayed")
			}
		}
		if r.Attempts <= failed {
			o.addViolation("P8", c, "attempt %d follows %d", r.Attempts, failed)
		}
		next.retries[e] = r
	}
	for _, text := range slices.Concat(next.doc.Open, next.doc.Held) {
		e := parse(text)
		if next.outstanding[e] {
			o.addViolation("P15", main, "%s is being delivered, but is also in an open bundle", e)
		}
		next.outstanding[e] = true
	}
	for e := range next.retries {
		if next.outstanding[e] {
			o.addViolation("P3", main, "%s is being delivered, but also waits as a retry", e)
		}
		next.outstanding[e] = true
	}
}

// !!
func (o *Observer) compareCursors(id string, before, next *cursor, main partitionChange) {
	a, b := &before.doc, &next.doc
	if n := b.Delivered + b.Errored + b.Cancelled + b.Expired + int64(len(next.outstanding)); n != b.Triggered {
		o.addViolation("P2", main, "%d deliveries were triggered, but there are %d", b.Triggered, n)
	}
	if b.Retries != len(next.retries) {
		o.addViolation("P6", main, "it records %d retries, but has %d", b.Retries, len(next.retries))
	}
	began, newly := make(map[Entry]bool), 0
	for p, at := range next.at {
		if at < before.at[p] {
			o.addViolation("P1", main, "priority %d went back from entry %d to %d", p, before.at[p], at)
		}
		// The cursor of a watch may begin after changes that are not published yet.
		begins := strings.HasPrefix(id, "w|") && at == before.at[p]
		if known := o.streams[b.Stream]; !begins && (known == nil || at > int64(len(known.entries[p]))) {
			o.addViolation("P1", main, "priority %d is at entry %d, which was not published", p, at)
		}
		for n := before.at[p]; n < at; n++ {
			began[Entry{b.Stream, p, n}] = true
		}
	}
	for e := range next.outstanding {
		if !before.outstanding[e] && !began[e] {
			newly++
		}
	}
	// If more deliveries were triggered than the cursor has passed entries, the difference is the number of replays. A
	// replayed delivery is missing in next.outstanding if it ended in the same commit.
	again := int(b.Triggered-a.Triggered) - (len(began) - int(b.Filtered-a.Filtered))
	if requested := o.countRequestedReplays(id, a, b); again > requested || again < newly {
		o.addViolation("P3", main, "%d deliveries are replayed, %d of them visibly, but %d were requested", again, newly, requested)
	}
	for e := range before.outstanding {
		began[e] = true
	}
	var ended []Entry
	for e := range began {
		if !next.outstanding[e] {
			ended = append(ended, e)
		}
	}
	settled := b.Delivered - a.Delivered + b.Errored - a.Errored + b.Cancelled - a.Cancelled + b.Expired - a.Expired
	if n := settled + b.Filtered - a.Filtered; n != int64(len(ended)+again-newly) {
		o.addViolation("P3", main, "%d deliveries have ended, but %d are counted", len(ended), n)
	}
	if n := int64(len(next.dead) - len(before.dead) + next.revived); n != b.Errored-a.Errored {
		o.addViolation("P1", main, "there are %d new dead letters, but %d are counted", n, b.Errored-a.Errored)
	}
	if isWatch(id) && !b.Retired {
		o.checkListed(id, next, o.pageOf(id, b.Stream), main)
	}
	o.checkBundle(before, next, main)
	o.checkEnded(id, before, next, ended, main)
	o.checkOwner(before, next, settled, main)
	if calls := o.callbacks.Calls; calls != nil && b.Attempts > calls(id) {
		o.addViolation("P8", main, "%d attempts are counted, but %d calls were made", b.Attempts, calls(id))
	}
	for e, r := range next.retries {
		if budget := o.callbacks.Budget; budget != nil && r.Attempts >= budget(id) {
			o.addViolation("P8", main, "%s has failed %d times, but waits for another attempt", e, r.Attempts)
		}
		if listed := o.shards[shardOf(id)][id]; listed == nil || listed.Due == 0 || listed.Due > r.Due {
			o.addViolation("P7", main, "the shard lists the cursor with a later time than the due time of %s", e)
		}
	}
}

// countRequestedReplays returns the number of deliveries that a commit may replay: one for each replay request of a
// single entry that the commit executes, and the new matches of the replay of a range.
func (o *Observer) countRequestedReplays(id string, a, b *cursorDoc) int {
	n := int(b.Matched)
	if a.Replay == b.Replay {
		n -= int(a.Matched)
	}
	if b.Followed < a.Followed || n < 0 {
		o.addViolation("P3", partitionChange{partition: id}, "a replay went back")
	}
	listed := o.shards[shardOf(id)][id]
	if listed == nil {
		return n
	}
	for _, r := range listed.Replays {
		if r.Number > a.Followed && r.Number <= b.Followed && r.Position != "" {
			n++
		}
	}
	if n > 0 && a.Replay > 0 && a.Replay == b.Replay {
		o.markReached("a replay of a range repeated deliveries")
	}
	return n
}

// Replaying returns the number of the last replay request that a cursor has executed, the number of the last stored
// replay request, and whether the replay of a range is running.
func (o *Observer) Replaying(id string) (followed, requested int, isRunning bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.cursors[id]; c != nil {
		followed, isRunning = c.doc.Followed, c.doc.Replay > 0 && c.doc.Ended == ""
	}
	if listed := o.shards[shardOf(id)][id]; listed != nil && len(listed.Replays) > 0 {
		requested = listed.Replays[len(listed.Replays)-1].Number
	}
	return followed, requested, isRunning
}

// checkEnded compares ended deliveries with the responses of their receiver.
func (o *Observer) checkEnded(id string, before, next *cursor, ended []Entry, main partitionChange) {
	a, b := &before.doc, &next.doc
	if o.callbacks.Matches == nil || b.Cancelled > a.Cancelled || b.Expired > a.Expired {
		return
	}
	filtered := int64(0)
	for _, e := range ended {
		switch {
		case !o.callbacks.Matches(id, e):
			filtered++
		case next.dead[e] != nil:
			o.markReached("a delivery became a dead letter")
		case !o.callbacks.Accepted(id, e):
			o.addViolation("P4", main, "%s is counted as delivered, but its receiver has not accepted it", e)
		}
	}
	if filtered != b.Filtered-a.Filtered {
		o.addViolation("P3", main, "%d entries did not pass the filter, but %d are counted", filtered, b.Filtered-a.Filtered)
	}
}

// checkOwner checks a commit that changes the owner against P5. The only delivery that the commit may end is a poison
// delivery, which becomes a dead letter.
func (o *Observer) checkOwner(before, next *cursor, settled int64, main partitionChange) {
	a, b := &before.doc, &next.doc
	next.takeovers = before.takeovers
	if a.By == b.By || a.By == "" {
		return
	}
	next.takeovers++
	o.markReached("a cursor was taken over")
	poison := b.Errored - a.Errored
	if settled != poison || poison > 1 || b.Attempts != a.Attempts || b.Filtered != a.Filtered {
		o.addViolation("P5", main, "%s settles deliveries of %s", b.By, a.By)
	}
	if poison == 1 {
		o.markReached("a delivery that had killed its nodes became a dead letter")
	}
}

// Outstanding returns the outstanding deliveries of a cursor and, for each priority, the number of the first entry
// after the cursor's position.
func (o *Observer) Outstanding(id string) (entries []Entry, at map[int]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at = make(map[int]int64)
	c := o.cursors[id]
	if c == nil {
		return nil, at
	}
	for e := range c.outstanding {
		entries = append(entries, e)
	}
	for p, n := range c.at {
		at[p] = n
	}
	return entries, at
}

// DeadLetters returns the number of dead letters of a cursor.
func (o *Observer) DeadLetters(id string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.cursors[id]; c != nil {
		return len(c.dead)
	}
	return 0
}

// Begin returns, for each priority, the number of the first entry of a cursor.
func (o *Observer) Begin(id string) map[int]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.cursors[id]; c != nil {
		return c.begin
	}
	return nil
}

// IsRetired reports whether a cursor is retired.
func (o *Observer) IsRetired(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.cursors[id]
	return c != nil && c.doc.Retired
}

// Attempts returns the number of counted attempts of a cursor. losses is the number of times that an owner lost the
// cursor because another incarnation took over the cursor or its shard.
func (o *Observer) Attempts(id string) (attempts int64, losses int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.cursors[id]; c != nil {
		attempts, losses = c.doc.Attempts, c.takeovers
	}
	var shard int
	if _, err := fmt.Sscanf(shardOf(id), "|shard|%d", &shard); err == nil {
		losses += o.losses[shard]
	}
	return attempts, losses
}

// Dead reports whether an entry is a dead letter of a cursor.
func (o *Observer) Dead(id string, e Entry) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.cursors[id]
	return c != nil && c.dead[e] != nil
}

// Published returns the number of entries of a stream by priority.
func (o *Observer) Published(name string) map[int]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := make(map[int]int64)
	if s := o.streams[name]; s != nil {
		for p, entries := range s.entries {
			n[p] = int64(len(entries))
		}
	}
	return n
}
