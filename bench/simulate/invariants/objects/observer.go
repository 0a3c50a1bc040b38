package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// An Observer checks commits against the invariants. It is safe for concurrent use.
type Observer struct {
	// Reached is called with the name of each rare state that a commit reaches. It may be nil.
	Reached func(state string)

	// HasTopic is true if all nodes have Options.Topic.
	HasTopic bool

	// Forgets returns two times. A row may be forgotten if its version has a newer row and its time is before rows. The
	// newest row of a version that does not exist may be forgotten if its time is before dead. If Forgets is nil, no
	// row may be forgotten.
	Forgets func() (rows, dead time.Time)

	mu        sync.Mutex
	patches   []*expectedPatch
	jobs      map[string]job    // stored jobs, by UUID
	running   map[string]string // UUIDs of running jobs, by the id of the document that names the running job
	requests  map[key]string    // requests of jobs, by the document that stores them
	documents map[key]scopeDocument
	objects   map[key]*objectState
	buckets   map[string]int          // number of shards, by bucket
	created   map[key][]scopeDocument // changes for watches that the current commit stores, by object
	states    map[key][]scopeDocument // changes for the topic that the current commit stores, by object
	found     []error
}

// A key identifies a document, or the object that the document stores.
type key struct{ partition, id string }

// An objectState is the known state of an object.
type objectState struct {
	rows map[eventIdentity]objectRow

	forgotten map[eventIdentity]objectRow // all forgotten rows so far

	writes  map[string]bool // ids of all writes so far
	commits int
	spilled map[string]bool // ids of the documents of spilled rows and copies
	doc     scopeDocument
}

// New returns an Observer of an empty store.
func New() *Observer {
	return &Observer{
		documents: make(map[key]scopeDocument), objects: make(map[key]*objectState), buckets: make(map[string]int),
		jobs: make(map[string]job), running: make(map[string]string), requests: make(map[key]string),
	}
}

// Commit checks the changes of one commit, and returns an error that joins all violations.
func (o *Observer) Commit(changes []embedded.Change) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found, o.created, o.states = nil, make(map[key][]scopeDocument), make(map[key][]scopeDocument)
	changed := make(map[key]bool) // objects with a changed document; true if the main document of the object changed
	for _, c := range changes {
		if c.Container != containers.Objects {
			o.addViolation("containers", key{"", c.ID}, "no checker checks the documents of container %s", c.Container)
			continue
		}
		o.noteDocument(c, changed)
	}
	o.checkRunningJobs()
	for _, k := range slices.SortedFunc(maps.Keys(changed), func(a, b key) int { return strings.Compare(a.partition+a.id, b.partition+b.id) }) {
		if !changed[k] {
			o.addViolation("batch", k, "its spilled rows or changes were stored without a change of the object")
			continue
		}
		o.checkObject(k)
	}
	return errors.Join(o.found...)
}

// noteDocument stores a changed document, and notes its object.
func (o *Observer) noteDocument(c embedded.Change, changed map[key]bool) {
	var names []string
	k := key{id: c.ID}
	if err := json.Unmarshal([]byte(c.Partition), &names); err != nil || len(names) != 1 {
		o.addViolation("layout", k, "it is in the wrong partition %s", c.Partition)
		return
	}
	k.partition = names[0]
	before, existed := o.documents[k]
	var d scopeDocument
	if c.JSON == nil {
		d = before
		delete(o.documents, k)
	} else {
		if err := json.Unmarshal(c.JSON, &d); err != nil {
			o.addViolation("layout", k, "it cannot be read: %v", err)
			return
		}
		o.documents[k] = d
	}
	switch d.Kind {
	case "bucket":
		if c.JSON == nil || existed && d.Shards != before.Shards || d.Shards < 1 || d.Shards > 256 {
			o.addViolation("shard", k, "the bucket has %d shards, but had %d", d.Shards, before.Shards)
		}
		o.buckets[d.Bucket] = d.Shards
	case "object":
		changed[k] = true
	case "row", "head":
		of := key{k.partition, d.Object}
		if _, is := changed[of]; !is {
			changed[of] = false
		}
		spilled := o.objectOf(of).spilled
		if c.JSON == nil {
			delete(spilled, k.id)
		} else {
			spilled[k.id] = true
		}
	case "change":
		if c.JSON != nil { // it is removed after it was published
			o.noteChange(k, &d, existed, changed)
		}
	case "state-change":
		if c.JSON != nil { // it is removed after it was published
			o.noteState(k, &d, existed, changed)
		}
	case "request":
		if text := requestOf(c.JSON); existed && c.JSON != nil && text != o.requests[k] {
			o.addViolation("L8", k, "the request of a job has changed")
		} else {
			o.requests[k] = text
		}
	case "job", "running":
		o.checkJob(k, d.Kind, c.JSON)
	case "sweep": // the position of a sweep is not checked, but each row that the sweep forgets is
	default:
		o.addViolation("layout", k, "no checker checks documents of kind %q", d.Kind)
	}
}

func (o *Observer) objectOf(k key) *objectState {
	known := o.objects[k]
	if known == nil {
		known = &objectState{rows: make(map[eventIdentity]objectRow), forgotten: make(map[eventIdentity]objectRow), writes: make(map[string]bool), spilled: make(map[string]bool)}
		o.objects[k] = known
	}
	return known
}

// checkObject checks an object after a commit.
func (o *Observer) checkObject(k key) {
	known := o.objectOf(k)
	doc, exists := o.documents[k]
	j := &objectCheck{Observer: o, key: k, before: known, doc: doc, exists: exists, heads: make(map[string]objectRow), live: make(map[string]any)}
	for id := range known.spilled {
		switch d := o.documents[key{k.partition, id}]; d.Kind {
		case "row":
			j.spilled = append(j.spilled, d.Row)
		case "head":
			if d.Version != d.Row.Version {
				j.addViolation("L4", "the copy of version %q holds a row of version %q", d.Version, d.Row.Version)
			}
			j.heads[d.Version], j.live[d.Version] = d.Row, d.Live
		}
	}
	slices.SortFunc(j.spilled, compareRows)
	j.checkObject()
	for _, r := range j.gone {
		known.forgotten[r.identityOf()] = r
	}
	known.rows = make(map[eventIdentity]objectRow)
	for _, r := range j.allRows() {
		known.rows[r.identityOf()] = r
	}
	for _, id := range j.doc.Writes {
		known.writes[id] = true
	}
	known.doc = j.doc
	known.commits++
}

// Commits returns the number of commits to an object.
func (o *Observer) Commits(bucket, name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	shards := o.buckets[bucket]
	if shards == 0 {
		return 0
	}
	if known := o.objects[key{shardOf(bucket, name, shards), idOf(name)}]; known != nil {
		return known.commits
	}
	return 0
}

func (o *Observer) addViolation(rule string, k key, format string, args ...any) {
	text, _ := json.Marshal(o.documents[k]) // a scopeDocument can always be encoded
	const limit = 2000
	o.found = append(o.found, fmt.Errorf("%s: %s\n  document %s of %s\n  is       %s", rule, fmt.Sprintf(format, args...), k.id, k.partition, text[:min(len(text), limit)]))
}

func (o *Observer) markReached(state string) {
	if o.Reached != nil {
		o.Reached(state)
	}
}
