package push

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An Entry identifies an entry of a stream.
type Entry struct {
	Stream   string // "topic|name"
	Priority int
	Number   int64
}

func (e Entry) String() string { return fmt.Sprintf("%s %d.%d", e.Stream, e.Priority, e.Number) }

// Callbacks report the actions of receivers and nodes to an Observer. The Observer calls them during commits.
type Callbacks struct {
	// Matches reports whether an entry passes the filter of a cursor.
	Matches func(cursor string, e Entry) bool
	// Accepted reports whether the receiver of a cursor has accepted an entry.
	Accepted func(cursor string, e Entry) bool
	// Calls returns the number of calls to the receiver of a cursor that nodes have begun.
	Calls func(cursor string) int64
	// Budget returns the maximum number of attempts for an entry of a cursor.
	Budget func(cursor string) int
	// Reached is called with the name of each rare state that a commit reaches. It may be nil.
	Reached func(state string)
}

// An Observer checks commits against the invariants. It is safe for concurrent use.
type Observer struct {
	callbacks Callbacks

	mu         sync.Mutex
	streams    map[string]*streamState
	cursors    map[string]*cursor
	shards     map[string]map[string]*shardEntry // entries of cursors in their shards, by partition and cursor
	watched    map[string]bool                   // partitions of watch pages whose stream the shard lists as watched
	pages      map[string]map[string]*watchPage  // pages of watches, by partition and id
	parties    map[string]*party                 // known producers, channels and consumers, by partition and id
	resources  map[string]*resourceState         // documents of clients, by partition
	events     map[string][]string               // events of the changes of clients' documents, by stream
	watches    map[string]*watch                 // stored watches, by the id of their cursor
	assignment int64                             // version of the assignment
	owners     [64]string                        // names of the nodes that own the shards
	losses     [64]int                           // number of times that each shard lost its owner
	found      []error
}

// New returns an Observer of an empty store.
func New(w Callbacks) *Observer {
	return &Observer{
		callbacks: w, streams: make(map[string]*streamState), cursors: make(map[string]*cursor),
		shards: make(map[string]map[string]*shardEntry), parties: make(map[string]*party),
		watched: make(map[string]bool), pages: make(map[string]map[string]*watchPage),
		resources: make(map[string]*resourceState), events: make(map[string][]string), watches: make(map[string]*watch),
	}
}

// SetCallbacks replaces the callbacks.
func (o *Observer) SetCallbacks(w Callbacks) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.callbacks = w
}

// A partitionChange is a changed document of a partition.
type partitionChange struct {
	partition string
	id        string
	json      []byte // text of the document; nil if the document was deleted
}

// Commit checks the changes of one commit.
func (o *Observer) Commit(changes []embedded.Change) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found = nil
	var streams, cursors []partitionChange
	for _, c := range changes {
		one := partitionChange{strings.Trim(string(c.Partition), `[]"`), c.ID, c.JSON}
		switch c.Container {
		case containers.Streams:
			streams = append(streams, one)
		case containers.Cursors:
			cursors = append(cursors, one)
		default:
			o.addViolation("containers", one, "no checker checks the documents of container %s", c.Container)
		}
	}
	if len(streams) > 0 {
		o.checkStream(streams)
	}
	if len(cursors) > 0 {
		o.checkCursors(cursors)
	}
	return errors.Join(o.found...)
}

func (o *Observer) checkCursors(changes []partitionChange) {
	partition := changes[0].partition
	switch {
	case isWatchPages(partition):
		for _, c := range changes {
			o.checkWatchPage(c)
		}
	case strings.HasPrefix(partition, "|shard|"):
		for _, c := range changes {
			o.checkShardEntry(c)
		}
	case partition == "|nodes":
		for _, c := range changes {
			o.checkNodes(c)
		}
	case isPartyList(partition):
		for _, c := range changes {
			o.checkParty(c)
		}
	case strings.HasPrefix(partition, resourcePrefix):
		o.checkResource(partition, changes)
	case strings.HasPrefix(partition, watchesPrefix):
		for _, c := range changes {
			o.checkWatch(strings.TrimPrefix(partition, watchesPrefix), c)
		}
	case !strings.HasPrefix(partition, "|"):
		o.checkCursor(partition, changes)
	}
}

// A shardEntry is the entry of a cursor in its shard.
type shardEntry struct {
	Stream  string `json:"stream"`
	Due     int64  `json:"due"`
	Replays []struct {
		Number   int    `json:"n"`
		Position string `json:"position"`
	} `json:"replays"`
}

func (o *Observer) checkShardEntry(c partitionChange) {
	if strings.HasPrefix(c.id, watchedPrefix) {
		o.noteWatchedStreams(c)
		return
	}
	if c.json == nil {
		switch known := o.cursors[c.id]; {
		case known == nil || known.doc.Retired:
		case isWatch(c.id):
			o.checkUnlisted(c, known)
		default:
			o.addViolation("P7", c, "the entry of a cursor was removed")
		}
		delete(o.shards[c.partition], c.id)
		return
	}
	e := &shardEntry{}
	if !o.decodeInto(c, e) {
		return
	}
	of := o.shards[c.partition]
	if of == nil {
		of = make(map[string]*shardEntry)
		o.shards[c.partition] = of
	}
	if before := of[c.id]; before != nil && before.Due != 0 && (e.Due == 0 || e.Due > before.Due) {
		o.addViolation("P7", c, "the due time of an entry rose from %d to %d", before.Due, e.Due)
	}
	of[c.id] = e
}

func (o *Observer) checkNodes(c partitionChange) {
	if c.id != "assignment" || c.json == nil {
		return
	}
	var a struct {
		Version int64             `json:"version"`
		Owners  map[string]string `json:"owners"`
	}
	if !o.decodeInto(c, &a) {
		return
	}
	if a.Version != o.assignment+1 {
		o.addViolation("shards", c, "version %d of the assignment follows %d", a.Version, o.assignment)
	}
	o.assignment = a.Version
	var owners [64]string
	for owner, text := range a.Owners {
		mask, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			o.addViolation("layout", c, "the shards of %s: %v", owner, err)
		}
		for shard := range owners {
			if mask>>shard&1 == 0 {
				continue
			}
			if owners[shard] != "" {
				o.addViolation("shards", c, "shard %d has two owners, %s and %s", shard, owners[shard], owner)
			}
			owners[shard] = owner
		}
	}
	for shard, owner := range o.owners {
		if owner != "" && owner != owners[shard] {
			o.losses[shard]++
		}
	}
	o.owners = owners
	if len(a.Owners) > 1 {
		o.markReached("two nodes shared the shards")
	}
}

// ShardOwner returns the node that owns a shard, or "".
func (o *Observer) ShardOwner(shard int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owners[shard]
}

func (o *Observer) addViolation(rule string, c partitionChange, format string, args ...any) {
	doc := "(none)"
	if c.json != nil {
		const limit = 2000
		doc = string(c.json[:min(len(c.json), limit)])
	}
	o.found = append(o.found, fmt.Errorf("%s: %s\n  document %s of %s\n  after    %s", rule, fmt.Sprintf(format, args...), c.id, c.partition, doc))
}

func (o *Observer) decodeInto(c partitionChange, into any) bool {
	if err := json.Unmarshal(c.json, into); err != nil {
		o.addViolation("layout", c, "it cannot be read: %v", err)
		return false
	}
	return true
}

func (o *Observer) markReached(state string) {
	if o.callbacks.Reached != nil {
		o.callbacks.Reached(state)
	}
}

// Cursors returns the ids of all cursors, in order.
func (o *Observer) Cursors() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for id := range o.cursors {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}
