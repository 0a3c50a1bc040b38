package embedded_test

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// The plain model of a container: documents with a time to live, a unique key
// on mail, an order of insertion and an order of changes.

const machineTTL = 30 // seconds that a document of the machine lives by default

// An item is one document. What is not in it is that of every document.
type item struct {
	ID   string `json:"id"`
	PK   string `json:"pk"`
	N    int    `json:"n"`
	Mail string `json:"mail,omitempty"` // missing is a value as well: one document may do without
	TTL  int    `json:"ttl,omitempty"`
	Data string `json:"data"`
}

type storedItem struct {
	item
	etag     azcore.ETag // "" where no answer told
	inserted int
	changed  int
	at       time.Time
}

func (s storedItem) expired(now time.Time) bool {
	life := cmp.Or(s.TTL, machineTTL)
	return life != -1 && now.Unix() >= s.at.Unix()+int64(life)
}

type place struct{ pk, id string }

// A model is copied for a batch, which happens as a whole or not at all.
type model struct {
	items map[place]storedItem
	count int // of writes: gives the orders
	now   time.Time
}

func (m *model) copy() *model {
	return &model{items: maps.Clone(m.items), count: m.count, now: m.now}
}

// An operation is what a client asks for. A patch adds n and sets mail, if
// that is given; if least is not 0, it does so only if n is at least that.
type operation struct {
	kind    kind
	pk      string
	item    item
	ifMatch azcore.ETag
	least   int
}

// do returns the status. What fails changes nothing, but that a document
// which has expired gives way to whoever comes near it.
func (m *model) do(o operation) int {
	at := place{o.pk, o.item.ID}
	old, exists := m.items[at]
	if exists && old.expired(m.now) {
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
	next := storedItem{item: o.item, inserted: old.inserted, at: m.now}
	if o.kind == reading {
		return 200
	}
	if o.kind == deleting {
		delete(m.items, at)
		m.count++
		return 204
	}
	if o.kind == patching {
		next.item = old.item
		next.N += o.item.N
		next.Mail = cmp.Or(o.item.Mail, old.Mail)
	}
	for other, have := range m.items {
		if other.pk == at.pk && other != at && have.Mail == next.Mail {
			return 409 // although it may have expired: its key is free when it is swept
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

// note keeps the etag that an answer told.
func (m *model) note(o operation, etag azcore.ETag) {
	at := place{o.pk, o.item.ID}
	if s, ok := m.items[at]; ok {
		s.etag = etag
		m.items[at] = s
	}
}

// all does every operation, or none.
func (m *model) all(ops []operation) (*model, []int) {
	after, statuses := m.copy(), make([]int, len(ops))
	for i, o := range ops {
		if statuses[i] = after.do(o); statuses[i] < 300 {
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

// sweep removes what has expired and returns how many there were.
func (m *model) sweep() int {
	before := len(m.items)
	maps.DeleteFunc(m.items, func(_ place, s storedItem) bool { return s.expired(m.now) })
	return before - len(m.items)
}

// living are the documents that somebody can see, of one partition or of all.
func (m *model) living(pk string) []storedItem {
	var found []storedItem
	for at, s := range m.items {
		if (pk == "" || at.pk == pk) && !s.expired(m.now) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b storedItem) int { return cmp.Compare(a.inserted, b.inserted) })
	return found
}

// changes are the changes after a write, the oldest first.
func (m *model) changes(after int) (ids []string) {
	found := slices.DeleteFunc(m.living(""), func(s storedItem) bool { return s.changed <= after })
	slices.SortFunc(found, func(a, b storedItem) int { return cmp.Compare(a.changed, b.changed) })
	for _, s := range found {
		ids = append(ids, s.PK+"/"+s.ID+"/"+strconv.Itoa(s.N))
	}
	return ids
}
