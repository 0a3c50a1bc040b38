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

// An Observer checks commits against the invariants. It is safe for concurrent use, but see the package comment.
type Observer struct {
	// Reached is called with the name of each rare state that a commit reaches. It may be nil.
	Reached func(state string)

	capacity int

	mu         sync.Mutex
	documents  map[Key][]byte
	recipients map[string]*recipientState
	drawers    map[string]*drawerState // by id
	pages      map[Key]*pageDocument
	gates      map[string]string // gate of the group of each origin, learned from bundles
	deleted    map[string]bool   // deleted objects of the content store; nil if Deleted was never called
	found      []error           // violations of the current commit
	changes    map[Key]documentChange
}

// A Key identifies a document of a store.
type Key struct{ Container, Partition, ID string }

func (k Key) String() string { return fmt.Sprintf("%s %q %s", k.Container, k.Partition, k.ID) }

// A documentChange is a document before and after a commit. before is nil if the commit created the document, and after
// is nil if the commit deleted it.
type documentChange struct{ before, after []byte }

// New returns an Observer of an empty store. A drawer holds up to capacity events.
func New(capacity int) *Observer {
	return &Observer{
		capacity:   capacity,
		documents:  make(map[Key][]byte),
		recipients: make(map[string]*recipientState),
		gates:      make(map[string]string),
		drawers:    make(map[string]*drawerState),
		pages:      make(map[Key]*pageDocument),
	}
}

// A ViolationError is an invariant that a commit has broken.
type ViolationError struct {
	Rule     string
	Text     string
	Document Key
	Before   []byte // document before the commit; nil if the commit created it
	After    []byte // document after the commit; nil if the commit deleted it
}

// Error returns the violation with both states of the document.
func (v *ViolationError) Error() string {
	return fmt.Sprintf("%s: %s\n  document %s\n  before   %s\n  after    %s", v.Rule, v.Text, v.Document, shownDocument(v.Before), shownDocument(v.After))
}

// shownDocument returns the text of a document for errors.
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

// Commit checks the changes of one commit, and returns an error that joins a ViolationError for each broken rule. After
// a violation, the next check still starts from the new state.
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

// checkDocument checks the change of one document.
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
		case kind.PartitionKey == "|survey": // the rules do not cover the survey, because no decision of the hub depends on it
		case strings.HasPrefix(key.ID, "filter"): // a hint
		case strings.Contains(kind.PartitionKey, "|"):
			o.checkDrawer(key, c)
		default:
			o.checkPage(key, c)
		}
	case containers.Bundles:
		o.sortChange(key, c, of)
	default:
		o.addViolation("containers", key, "no checker checks the documents of this container")
	}
}

// addViolation records that the commit breaks a rule.
func (o *Observer) addViolation(rule string, key Key, format string, args ...any) {
	before := o.documents[key]
	after := before
	if c, ok := o.changes[key]; ok {
		before, after = c.before, c.after
	}
	o.found = append(o.found, &ViolationError{Rule: rule, Text: fmt.Sprintf(format, args...), Document: key, Before: before, After: after})
}

// decodeInto decodes a document. If this fails, it adds a violation and returns false. For a nil document, into stays
// the zero value.
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

// A recipientState is the known state of a recipient.
type recipientState struct {
	key      Key // key of the head
	head     headDocument
	intents  map[string]*saveIntent // all intents so far, by id
	ordinals map[string]map[int]*drawerState
	gates    map[string]*gateDocument   // by id
	bundles  map[string]*bundleDocument // by id
	firsts   map[string]int64           // first number of the bundle that was opened last, by group
	began    map[string]int64           // watermark before each cabinet was created
	removals map[string]int64           // number of the change that removed each bundle
	replaced map[string]bool            // earlier content objects of bundles
}

func (o *Observer) recipientOf(name string) *recipientState {
	r := o.recipients[name]
	if r == nil {
		r = &recipientState{
			intents: make(map[string]*saveIntent), ordinals: make(map[string]map[int]*drawerState),
			gates: make(map[string]*gateDocument), bundles: make(map[string]*bundleDocument), firsts: make(map[string]int64),
			began: make(map[string]int64), removals: make(map[string]int64),
		}
		o.recipients[name] = r
	}
	return r
}

// gatePosition returns the position that a gate has in a cabinet.
func (r *recipientState) gatePosition(cabinet string) cabinetPosition {
	for _, g := range r.gates {
		if _, ok := g.At[cabinet]; ok {
			return g.positionIn(cabinet, &r.head)
		}
	}
	return (&gateDocument{}).positionIn(cabinet, &r.head)
}

// floorOf returns the lowest retained ordinal of a cabinet.
func (r *recipientState) floorOf(cabinet string) int { return r.head.floorOf(cabinet) }
