package embedded_test

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// This file contains a simple model of a container: documents with a time to live, a unique key on mail, an insertion
// order and a change order.

const machineTTL = 30 // default time to live of documents, in seconds

// A modelItem contains the members in which documents differ.
type modelItem struct {
	ID   string `json:"id"`
	PK   string `json:"pk"`
	N    int    `json:"n"`
	Mail string `json:"mail,omitempty"` // a missing mail counts as a value, so only one document can have none
	TTL  int    `json:"ttl,omitempty"`
	Data string `json:"data"`
}

type storedItem struct {
	modelItem
	etag     azcore.ETag // "" if no response has contained the etag
	inserted int
	changed  int
	at       time.Time
}

func (s storedItem) hasExpired(now time.Time) bool {
	life := cmp.Or(s.TTL, machineTTL)
	return life != -1 && now.Unix() >= s.at.Unix()+int64(life)
}

type itemKey struct{ pk, id string }

// A containerModel is the state of a container. A batch is applied to a clone, so that a failed batch changes nothing.
type containerModel struct {
	items map[itemKey]storedItem
	count int // number of writes, which determines the insertion and change orders
	now   time.Time
}

func (m *containerModel) cloneModel() *containerModel {
	return &containerModel{items: maps.Clone(m.items), count: m.count, now: m.now}
}

// A modelOperation is one request. A patch adds to n, and sets mail unless it is empty. If least is not 0, the patch
// fails unless the document's n is at least least.
type modelOperation struct {
	kind    stepKind
	pk      string
	item    modelItem
	ifMatch azcore.ETag
	least   int
}

// applyOperation executes o and returns the status. A failed operation can still remove an expired document with the
// same id.
func (m *containerModel) applyOperation(o modelOperation) int {
	at := itemKey{o.pk, o.item.ID}
	old, exists := m.items[at]
	if exists && old.hasExpired(m.now) {
		delete(m.items, at)
		m.count++
		exists = false
	}
	switch {
	case o.kind == creating && exists:
		return 409
	case !exists && o.kind != creating && o.kind != upserting:
		return 404
	case exists && o.ifMatch != "" && o.ifMatch != old.etag && o.kind != creating && o.kind != reading:
		return 412
	case o.kind == patching && old.N < o.least:
		return 412
	}
	next := storedItem{modelItem: o.item, inserted: old.inserted, at: m.now}
	if o.kind == reading {
		return 200
	}
	if o.kind == deleting {
		delete(m.items, at)
		m.count++
		return 204
	}
	if o.kind == patching {
		next.modelItem = old.modelItem
		next.N += o.item.N
		next.Mail = cmp.Or(o.item.Mail, old.Mail)
	}
	for other, have := range m.items {
		if other.pk == at.pk && other != at && have.Mail == next.Mail {
			return 409 // also if the document with this key has expired, because only a sweep frees the key
		}
	}
	m.count++
	next.changed = m.count
	status := 200
	if !exists {
		next.inserted, status = m.count, 201
	}
	m.items[at] = next
	return status
}

// recordEtag stores the etag that a response contained.
func (m *containerModel) recordEtag(o modelOperation, etag azcore.ETag) {
	at := itemKey{o.pk, o.item.ID}
	if s, ok := m.items[at]; ok {
		s.etag = etag
		m.items[at] = s
	}
}

// applyBatch applies either all operations or none.
func (m *containerModel) applyBatch(ops []modelOperation) (*containerModel, []int) {
	after, statuses := m.cloneModel(), make([]int, len(ops))
	for i, o := range ops {
		if statuses[i] = after.applyOperation(o); statuses[i] < 300 {
			continue
		}
		for j := range statuses {
			if j != i {
				statuses[j] = 424
			}
		}
		return m, statuses
	}
	return after, statuses
}

// sweepExpired removes expired items and returns their number.
func (m *containerModel) sweepExpired() int {
	before := len(m.items)
	maps.DeleteFunc(m.items, func(_ itemKey, s storedItem) bool { return s.hasExpired(m.now) })
	return before - len(m.items)
}

// visibleItems returns the items that are not expired, of one partition or (if pk is "") of all partitions.
func (m *containerModel) visibleItems(pk string) []storedItem {
	var found []storedItem
	for at, s := range m.items {
		if (pk == "" || at.pk == pk) && !s.hasExpired(m.now) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b storedItem) int { return cmp.Compare(a.inserted, b.inserted) })
	return found
}

// changesAfter returns the ids of documents that changed after the given write, oldest change first.
func (m *containerModel) changesAfter(after int) (ids []string) {
	found := slices.DeleteFunc(m.visibleItems(""), func(s storedItem) bool { return s.changed <= after })
	slices.SortFunc(found, func(a, b storedItem) int { return cmp.Compare(a.changed, b.changed) })
	for _, s := range found {
		ids = append(ids, s.PK+"/"+s.ID+"/"+strconv.Itoa(s.N))
	}
	return ids
}
