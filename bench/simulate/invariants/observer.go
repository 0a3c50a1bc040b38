package invariants

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An Observer holds commits to the invariants. It is safe for concurrent use, but
// see the package comment.
type Observer struct {
	// Reached, if set, is called with the name of each rare state that a commit reaches.
	Reached func(state string)

	capacity int

	mu         sync.Mutex
	documents  map[Key][]byte
	recipients map[string]*recipient
	drawers    map[string]*drawer // by id
	pages      map[Key]*page
	gates      map[string]string // by origin: the gate of its group, as the bundles say
	deleted    map[string]bool   // objects of the content store; nil: it is not known
	found      []error           // by the commit that is looked at
	changes    map[Key]change
}

// A Key tells the documents of a store apart.
type Key struct{ Container, Partition, ID string }

func (k Key) String() string { return fmt.Sprintf("%s %q %s", k.Container, k.Partition, k.ID) }

// A change is what a commit makes of a document; nil: it was, or is, not there.
type change struct{ before, after []byte }

// New returns an Observer of an empty store whose drawers hold so many events.
func New(capacity int) *Observer {
	return &Observer{
		capacity:   capacity,
		documents:  make(map[Key][]byte),
		recipients: make(map[string]*recipient),
		gates:      make(map[string]string),
		drawers:    make(map[string]*drawer),
		pages:      make(map[Key]*page),
	}
}

// A ViolationError is one invariant that a commit has broken.
type ViolationError struct {
	Rule     string
	Text     string
	Document Key
	Before   []byte // what the document was; nil: it was not there
	After    []byte // what it is; nil: it is gone
}

// Error tells all of it.
func (v *ViolationError) Error() string {
	return fmt.Sprintf("%s: %s\n  document %s\n  before   %s\n  after    %s", v.Rule, v.Text, v.Document, shown(v.Before), shown(v.After))
}

// shown is a document as an error shows it.
func shown(doc []byte) string {
	const most = 2000
	switch {
	case doc == nil:
		return "(none)"
	case len(doc) > most:
		return string(doc[:most]) + "…"
	}
	return string(doc)
}

// Commit takes the changes of one commit in, and returns an error that joins a
// ViolationError for each rule they break. It goes on from what the store is then.
func (o *Observer) Commit(changes []embedded.Change) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found, o.changes = nil, make(map[Key]change, len(changes))
	order := make([]Key, 0, len(changes))
	for _, c := range changes {
		key := Key{c.Container, string(c.Partition), c.ID}
		first, again := o.changes[key]
		if !again {
			first.before = o.documents[key]
			order = append(order, key)
		}
		o.changes[key] = change{before: first.before, after: c.JSON}
		if o.documents[key] = c.JSON; c.JSON == nil {
			delete(o.documents, key)
		}
	}
	recipients := make(map[string]*mailboxes)
	for _, key := range order {
		o.look(key, o.changes[key], recipients)
	}
	for name, m := range recipients {
		o.mailboxesChanged(o.recipient(name), m)
	}
	slices.SortFunc(o.found, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(o.found...)
}

// look deals with one document.
func (o *Observer) look(key Key, c change, of map[string]*mailboxes) {
	switch key.Container {
	case containers.Catalog:
		if key.ID == "head" {
			o.headChanged(key, c)
		}
	case containers.Cabinet:
		whole := c.after
		if whole == nil {
			whole = c.before
		}
		var kind struct {
			PartitionKey string `json:"partitionKey"`
		}
		if !o.decode(key, whole, &kind) {
			return
		}
		switch {
		case kind.PartitionKey == "|survey": // readings, on which nothing depends
		case strings.HasPrefix(key.ID, "filter"): // a hint
		case strings.Contains(kind.PartitionKey, "|"):
			o.drawerChanged(key, c)
		default:
			o.pageChanged(key, c)
		}
	case containers.Bundles:
		o.sort(key, c, of)
	default:
		o.violated("containers", key, "no rule judges the documents of this container")
	}
}

// violated notes that the commit breaks a rule.
func (o *Observer) violated(rule string, key Key, format string, args ...any) {
	before := o.documents[key]
	after := before
	if c, ok := o.changes[key]; ok {
		before, after = c.before, c.after
	}
	o.found = append(o.found, &ViolationError{Rule: rule, Text: fmt.Sprintf(format, args...), Document: key, Before: before, After: after})
}

// decode reads a document; one that cannot be read is a violation. No document
// gives the zero value.
func (o *Observer) decode(key Key, doc []byte, into any) bool {
	if doc == nil {
		return true
	}
	if err := json.Unmarshal(doc, into); err != nil {
		o.violated("H1", key, "it cannot be read: %v", err)
		return false
	}
	return true
}

// reached reports a rare state.
func (o *Observer) reached(state string) {
	if o.Reached != nil {
		o.Reached(state)
	}
}

// A recipient is what is known of one.
type recipient struct {
	key      Key // of the head
	head     head
	intents  map[string]*intent // every one that was ever reserved
	ordinals map[string]map[int]*drawer
	gates    map[string]*gate   // by id
	bundles  map[string]*bundle // by id
	firsts   map[string]int64   // by group: where the bundle begins that was opened last
	began    map[string]int64   // by cabinet: the watermark before it was in the head
	removals map[string]int64   // the versions of the changes by which watched bundles were removed
	replaced map[string]bool    // objects that were the content of a bundle
}

func (o *Observer) recipient(name string) *recipient {
	r := o.recipients[name]
	if r == nil {
		r = &recipient{
			intents: make(map[string]*intent), ordinals: make(map[string]map[int]*drawer),
			gates: make(map[string]*gate), bundles: make(map[string]*bundle), firsts: make(map[string]int64),
			began: make(map[string]int64), removals: make(map[string]int64),
		}
		o.recipients[name] = r
	}
	return r
}

// gatePosition returns the position of the gates in a cabinet.
func (r *recipient) gatePosition(cabinet string) place {
	for _, g := range r.gates {
		if _, ok := g.At[cabinet]; ok {
			return g.position(cabinet, &r.head)
		}
	}
	return (&gate{}).position(cabinet, &r.head)
}

// floor is the lowest ordinal that is retained.
func (r *recipient) floor(cabinet string) int { return r.head.floor(cabinet) }
