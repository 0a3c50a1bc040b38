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
	changes    map[Key]documentChange
}

// A Key tells the documents of a store apart.
type Key struct{ Container, Partition, ID string }

func (k Key) String() string { return fmt.Sprintf("%s %q %s", k.Container, k.Partition, k.ID) }

// A documentChange is what a commit makes of a document; nil: it was, or is, not there.
type documentChange struct{ before, after []byte }

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
	return fmt.Sprintf("%s: %s\n  document %s\n  before   %s\n  after    %s", v.Rule, v.Text, v.Document, shownDocument(v.Before), shownDocument(v.After))
}

// shownDocument is a document as an error shows it.
func shownDocument(doc []byte) string {
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
	o.found, o.changes = nil, make(map[Key]documentChange, len(changes))
	order := make([]Key, 0, len(changes))
	for _, c := range changes {
		key := Key{c.Container, string(c.Partition), c.ID}
		first, again := o.changes[key]
		if !again {
			first.before = o.documents[key]
			order = append(order, key)
		}
		o.changes[key] = documentChange{before: first.before, after: c.JSON}
		if o.documents[key] = c.JSON; c.JSON == nil {
			delete(o.documents, key)
		}
	}
	recipients := make(map[string]*mailboxChanges)
	for _, key := range order {
		o.checkDocument(key, o.changes[key], recipients)
	}
	for name, m := range recipients {
		o.checkMailbox(o.recipientOf(name), m)
	}
	slices.SortFunc(o.found, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(o.found...)
}

// checkDocument deals with one document.
func (o *Observer) checkDocument(key Key, c documentChange, of map[string]*mailboxChanges) {
	switch key.Container {
	case containers.Catalog:
		if key.ID == "head" {
			o.checkHead(key, c)
		}
	case containers.Cabinet:
		whole := c.after
		if whole == nil {
			whole = c.before
		}
		var kind struct {
			PartitionKey string `json:"partitionKey"`
		}
		if !o.decodeInto(key, whole, &kind) {
			return
		}
		switch {
		case kind.PartitionKey == "|survey": // readings, on which nothing depends
		case strings.HasPrefix(key.ID, "filter"): // a hint
		case strings.Contains(kind.PartitionKey, "|"):
			o.checkDrawer(key, c)
		default:
			o.checkPage(key, c)
		}
	case containers.Bundles:
		o.sortChange(key, c, of)
	default:
		o.addViolation("containers", key, "no rule judges the documents of this container")
	}
}

// addViolation notes that the commit breaks a rule.
func (o *Observer) addViolation(rule string, key Key, format string, args ...any) {
	before := o.documents[key]
	after := before
	if c, ok := o.changes[key]; ok {
		before, after = c.before, c.after
	}
	o.found = append(o.found, &ViolationError{Rule: rule, Text: fmt.Sprintf(format, args...), Document: key, Before: before, After: after})
}

// decodeInto reads a document; one that cannot be read is a violation. No document
// gives the zero value.
func (o *Observer) decodeInto(key Key, doc []byte, into any) bool {
	if doc == nil {
		return true
	}
	if err := json.Unmarshal(doc, into); err != nil {
		o.addViolation("H1", key, "it cannot be read: %v", err)
		return false
	}
	return true
}

// markReached reports a rare state.
func (o *Observer) markReached(state string) {
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

func (o *Observer) recipientOf(name string) *recipient {
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
func (r *recipient) gatePosition(cabinet string) cabinetPosition {
	for _, g := range r.gates {
		if _, ok := g.At[cabinet]; ok {
			return g.positionIn(cabinet, &r.head)
		}
	}
	return (&gate{}).positionIn(cabinet, &r.head)
}

// floorOf is the lowest ordinal that is retained.
func (r *recipient) floorOf(cabinet string) int { return r.head.floorOf(cabinet) }
