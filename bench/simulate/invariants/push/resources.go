package push

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The prefixes of partition keys.
const (
	resourcePrefix = "|resource|"
	watchesPrefix  = "|watches|"
)

// A resourceState is the known state of a client's document.
type resourceState struct {
	doc     resourceDoc
	pending map[string]bool   // ids of stored changes
	before  map[string]string // version that each version replaced
}

type resourceDoc struct {
	IsAbsent  bool   `json:"absent"`
	Content   string `json:"content"`
	IsWatched bool   `json:"watched"`
	Changes   int64  `json:"changes"`
}

// hasContent reports whether the document exists for clients.
func (d *resourceDoc) hasContent() bool { return d.Content != "" && !d.IsAbsent }

type resourceChange struct {
	Resource string `json:"resource"`
	Version  int64  `json:"version"`
	Event    string `json:"event"`
}

// streamOfResource returns the name of the stream of a resource.
func streamOfResource(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "resource|" + hex.EncodeToString(sum[:])
}

// documentKey returns the key of the client's document in a partition.
func documentKey(partition string) string {
	return "/v1/resources/" + strings.TrimPrefix(partition, resourcePrefix)
}

// checkResource checks a commit to a client's document against P14: the document and the record of its change are stored
// in one commit.
func (o *Observer) checkResource(partition string, changes []partitionChange) {
	r := o.resources[partition]
	if r == nil {
		r = &resourceState{pending: make(map[string]bool), before: make(map[string]string)}
		o.resources[partition] = r
	}
	before, main := r.doc, partitionChange{partition: partition, id: "resource"}
	var created []partitionChange
	for _, c := range changes {
		switch isKnown := r.pending[c.id]; {
		case c.id == "resource":
			main, r.doc = c, resourceDoc{}
			if c.json != nil && !o.decodeInto(c, &r.doc) {
				return
			}
		case !strings.HasPrefix(c.id, "|change|resource|"):
			o.addViolation("layout", c, "it is not a document of a resource")
		case c.json == nil:
			o.checkRemovedChange(c)
			delete(r.pending, c.id)
		case isKnown:
			o.addViolation("P14", c, "a stored change was modified")
		default:
			created, r.pending[c.id] = append(created, c), true
		}
	}
	after := &r.doc
	if before.IsWatched && !after.IsWatched {
		o.addViolation("P14", main, "its mark that it is watched was removed")
	}
	if after.hasContent() && after.Content != before.Content {
		// The deletion of an unwatched document removes all its data. So a repeated creation may store the same version
		// again.
		if _, isKnown := r.before[after.Content]; isKnown && before.IsWatched {
			o.addViolation("P14", main, "a version is stored twice")
		}
		r.before[after.Content] = before.Content
	}
	want := before.Changes
	isChange := before.hasContent() && (!after.hasContent() || after.Content != before.Content)
	if before.IsWatched && isChange {
		want++
	}
	if after.Changes != want && (main.json != nil || before.IsWatched) {
		o.addViolation("P14", main, "it counts %d changes, want %d", after.Changes, want)
	}
	if n := int64(len(created)); n != want-before.Changes {
		o.addViolation("P14", main, "%d changes are stored with it, want %d", n, want-before.Changes)
		return
	}
	for _, c := range created {
		o.checkStoredChange(partition, c, want, after.hasContent())
	}
}

// checkStoredChange compares the stored record of a change with the change of the document.
func (o *Observer) checkStoredChange(partition string, c partitionChange, version int64, exists bool) {
	var d resourceChange
	if !o.decodeInto(c, &d) {
		return
	}
	want := resourceChange{documentKey(partition), version, "updated"}
	if !exists {
		want.Event = "deleted"
	}
	if d != want || c.id != fmt.Sprintf("|change|resource|%020d", version) {
		o.addViolation("P14", c, "the stored change is %v, want %v", d, want)
	}
	stream := streamOfResource(want.Resource)
	o.events[stream] = append(o.events[stream], want.Event)
	o.markReached("a watched document was changed")
}

// checkRemovedChange checks that a change is in the stream of its resource before it is removed.
func (o *Observer) checkRemovedChange(c partitionChange) {
	var version int64
	if _, err := fmt.Sscanf(c.id, "|change|resource|%d", &version); err != nil {
		o.addViolation("layout", c, "%v", err)
	}
	s := o.streams[streamOfResource(documentKey(c.partition))]
	if s == nil || int64(len(s.entries[0])) < version {
		o.addViolation("P14", c, "it was removed before it was published")
	}
}

// checkPublishedChange compares a new entry of the stream of a client's document with the change that has its number.
func (o *Observer) checkPublishedChange(stream string, c partitionChange, number int64, text json.RawMessage) {
	if !strings.HasPrefix(stream, "resource|") {
		return
	}
	var e struct {
		Attributes map[string]string `json:"a"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		o.addViolation("layout", c, "entry %d cannot be read: %v", number, err)
		return
	}
	key := e.Attributes["resource"]
	if streamOfResource(key) != stream {
		o.addViolation("P14", c, "entry %d is a change of %s, which belongs to another stream", number, key)
	}
	if !strings.HasPrefix(key, documentKey("")) {
		return // o.events contains only the changes of clients' documents
	}
	events := o.events[stream]
	if number >= int64(len(events)) || events[number] != e.Attributes["event"] {
		o.addViolation("P14", c, "entry %d is %q, but the change with this version is not", number, e.Attributes["event"])
	}
}

// Changes returns the number of changes of a client's document that were stored for its watches.
func (o *Observer) Changes(name string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.resources[resourcePrefix+name]; r != nil {
		return r.doc.Changes
	}
	return 0
}

// Unpublished returns a change of a client's document that is still stored because it was not published, or "".
func (o *Observer) Unpublished() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for partition, r := range o.resources {
		for id := range r.pending {
			return id + " of " + partition
		}
	}
	return ""
}

// A watch is a stored watch.
type watch struct {
	Resource string `json:"resource"`
	After    int64  `json:"after"`
	Created  int64  `json:"created"`
}

// checkWatch checks a change of a watch. A watch begins after the changes that its resource had before the resource was
// marked as watched.
func (o *Observer) checkWatch(owner string, c partitionChange) {
	key := watchKey(owner, c.id)
	if c.json == nil {
		delete(o.watches, key)
		return
	}
	next := &watch{}
	if !o.decodeInto(c, next) {
		return
	}
	if before := o.watches[key]; before != nil && *before != *next {
		o.addViolation("P18", c, "a member of a watch other than its callback has changed")
	}
	if name, isDocument := strings.CutPrefix(next.Resource, documentKey("")); isDocument && o.watches[key] == nil {
		r := o.resources[resourcePrefix+name]
		if r == nil || !r.doc.IsWatched || next.After > r.doc.Changes {
			o.addViolation("P18", c, "its resource is not watched, or has fewer than %d changes", next.After)
		}
	}
	o.watches[key] = next
}

// watchKey returns the id of the cursor of a watch.
func watchKey(owner, id string) string { return "w|" + owner + "|" + id }

// startPositions returns the positions at which the cursor of a watch begins.
func startPositions(w *watch) []string { return []string{fmt.Sprintf("0.%d.0.0", w.After)} }

// Replaced returns the version of a client's document that a version has replaced, or "". It returns false if the
// version was never stored.
func (o *Observer) Replaced(name, version string) (before string, isStored bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.resources[resourcePrefix+name]; r != nil {
		before, isStored = r.before[version]
	}
	return before, isStored
}

// Event returns the event of a change of a client's document, or "" if the document has no change with this number.
func (o *Observer) Event(name string, number int64) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if events := o.events[streamOfResource(documentKey(resourcePrefix+name))]; number < int64(len(events)) {
		return events[number]
	}
	return ""
}

// HasWatch reports whether the watch of a cursor is stored.
func (o *Observer) HasWatch(cursor string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.watches[cursor] != nil
}

// WatchWithoutCursor returns the cursor of a watch whose cursor is not stored, or "".
func (o *Observer) WatchWithoutCursor() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(o.watches)) {
		if o.cursors[id] == nil {
			return id
		}
	}
	return ""
}
