package domain_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func newRNG(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// A modelBucket does to one object what a bucket does, and reports it as a bucket does. What is
// current follows from its state, and not from our rules.
type modelBucket struct {
	rng       *rand.Rand
	mode      bucketMode
	versions  []modelVersion // from the oldest to the newest
	events    []domain.ObjectEvent
	sequencer int
	ids       int
	now       time.Time
	tick      time.Duration // the grain of the time of events
	hasNulls  bool
}

type bucketMode int

const (
	unversioned bucketMode = iota
	versioned
	suspended
)

type modelVersion struct {
	id       domain.VersionID
	isMarker bool
	change   string // ETag of the last event that changed it
}

// randomHistory returns a bucket in which something was done up to limit times. With nulls, lifecycle
// rules do something, too, and their events have no sequencers.
func randomHistory(rng *rand.Rand, limit int, nulls bool, tick time.Duration) *modelBucket {
	b := &modelBucket{rng: rng, mode: bucketMode(rng.IntN(3)), now: firstMoment, tick: tick, hasNulls: nulls}
	for range 1 + rng.IntN(limit) {
		b.act()
	}
	return b
}

func (b *modelBucket) act() {
	n := 7
	if b.hasNulls {
		n = 11
	}
	switch b.rng.IntN(n) {
	case 0, 1, 2:
		b.put()
	case 3, 4:
		b.delete(true)
	case 5:
		b.deleteVersion(b.rng.IntN(len(b.versions)+1), true)
	case 6: // versions may be turned on, and suspended, and on again
		switch {
		case b.mode == versioned:
			b.mode = suspended
		case b.mode == suspended || b.rng.IntN(4) == 0:
			b.mode = versioned
		}
	case 7, 8:
		b.transition()
	case 9:
		if n := len(b.versions); n > 0 && !b.versions[n-1].isMarker {
			b.delete(false)
		}
	case 10: // noncurrent versions expire, and a marker that hides none
		if n := len(b.versions); n > 1 {
			b.deleteVersion(b.rng.IntN(n-1), false)
		} else if n == 1 && b.versions[0].isMarker {
			b.deleteVersion(0, false)
		}
	}
}

// report adds an event to the history and returns its ETag.
func (b *modelBucket) report(v domain.VersionID, kind domain.ObjectEventType, isMarker, isNative bool) string {
	b.now = b.now.Add(time.Duration(1+b.rng.IntN(900)) * time.Millisecond)
	e := domain.ObjectEvent{
		Version: v, Type: kind, Marker: isMarker, Time: b.now.Truncate(b.tick),
		ObjectFacts: domain.ObjectFacts{ETag: fmt.Sprint(len(b.events))},
	}
	if isNative {
		b.sequencer += 1 + b.rng.IntN(40)
		text := fmt.Sprintf("%04X", b.sequencer)
		if b.rng.IntN(3) == 0 {
			text = strings.TrimRight(text, "0") // as if it were padded
		}
		e.Sequencer = must(domain.ParseSequencer(domain.HexSequencer, text))
	} else {
		e.Carrier = domain.Carrier{Message: "m", Index: len(b.events)}
	}
	b.events = append(b.events, e)
	return e.ETag
}

// newVersion returns the id of what is made now. The null version is replaced.
func (b *modelBucket) newVersion() domain.VersionID {
	if b.mode == versioned {
		b.ids++
		return must(domain.ParseVersionID(fmt.Sprint("v", b.rng.IntN(10), b.ids)))
	}
	b.versions = slices.DeleteFunc(b.versions, func(v modelVersion) bool { return v.id == domain.VersionID{} })
	return domain.VersionID{}
}

func (b *modelBucket) put() {
	id := b.newVersion()
	change := b.report(id, domain.ObjectCreated, false, true)
	b.versions = append(b.versions, modelVersion{id: id, change: change})
}

// delete deletes without a version: what is there, or it makes a marker.
func (b *modelBucket) delete(isNative bool) {
	if b.mode == unversioned {
		if len(b.versions) > 0 {
			b.deleteVersion(0, isNative)
		}
		return
	}
	id := b.newVersion()
	change := b.report(id, domain.ObjectDeleted, true, isNative)
	b.versions = append(b.versions, modelVersion{id: id, isMarker: true, change: change})
}

func (b *modelBucket) deleteVersion(i int, isNative bool) {
	if i >= len(b.versions) {
		return
	}
	b.report(b.versions[i].id, domain.ObjectDeleted, false, isNative)
	b.versions = slices.Delete(b.versions, i, i+1)
}

// transition changes the storage class of a version.
func (b *modelBucket) transition() {
	if len(b.versions) == 0 {
		return
	}
	v := &b.versions[b.rng.IntN(len(b.versions))]
	if !v.isMarker {
		v.change = b.report(v.id, domain.ObjectCreated, false, false)
	}
}

// current returns the ETag of the last event of the current version, or nothing.
func (b *modelBucket) current() string {
	if n := len(b.versions); n > 0 && !b.versions[n-1].isMarker {
		return b.versions[n-1].change
	}
	return ""
}

// A historyTest says which histories are tried, and how they are delivered.
type historyTest struct {
	name      string
	nulls     bool
	tick      time.Duration // of the times of events
	isInOrder bool
	limits    []domain.ObjectLimits
}

// histories returns how many histories a test tries: n, or as many as the variable says.
func histories(t *testing.T, n int) int {
	if text := os.Getenv("MESSAGEHUB_OBJECT_HISTORIES"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	return n
}

// TestObjectIsWhatTheBucketHas delivers random histories, each event twice, to an object that spills
// nothing. With distinct times the order of delivery does not matter.
func TestObjectIsWhatTheBucketHas(t *testing.T) {
	for _, tc := range []historyTest{
		{name: "native, in any order", tick: time.Second},
		{name: "with nulls, in any order", nulls: true, tick: time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(histories(t, 50_000)) {
				b := randomHistory(newRNG(seed), 14, tc.nulls, tc.tick)
				o := domain.Object{}
				u := o.Update(nil)
				for range 2 {
					for _, i := range b.rng.Perm(len(b.events)) {
						u.Apply(b.events[i : i+1])
					}
				}
				changes, _ := u.Finish(domain.ObjectLimits{})
				got := ""
				if c := changes.Object.Current; c != nil {
					got = c.ETag
				}
				if got != b.current() || changes.Object.Duplicates != int64(len(b.events)) || len(changes.Object.Rows) != len(b.events) {
					require.Equal(t, b.current(), got, "seed %d", seed)
					require.EqualValues(t, len(b.events), changes.Object.Duplicates, "seed %d", seed)
					require.Len(t, changes.Object.Rows, len(b.events), "seed %d", seed)
				}
			}
		})
	}
}

// TestObjectThatSpillsIsWhatTheBucketHas does so with few rows in the object, checks it after each
// update, and demands the rows of an object that spills nothing. Times of one second are often equal; then the order of arrival is to be that of the bucket.
func TestObjectThatSpillsIsWhatTheBucketHas(t *testing.T) {
	few := []domain.ObjectLimits{{Rows: 1}, {Rows: 2}, {Rows: 3}, {Rows: 4}, {Rows: 8}, {Rows: 7, Bytes: 900}}
	for _, tc := range []historyTest{
		{name: "native, in any order", tick: time.Second, limits: few},
		{name: "with nulls, in any order", nulls: true, tick: time.Millisecond, limits: few},
		{name: "with nulls and equal times, in order", nulls: true, tick: time.Second, isInOrder: true, limits: few},
	} {
		t.Run(tc.name, func(t *testing.T) {
			queries, spilled := 0, int64(0)
			for seed := range uint64(histories(t, 200)) {
				b := randomHistory(newRNG(seed), 30, tc.nulls, tc.tick)
				s, plain := newObjectStore(t, tc.limits[b.rng.IntN(len(tc.limits))]), newObjectStore(t, domain.ObjectLimits{})
				b.deliver(tc, s, plain)
				require.Equal(t, plain.describe(), s.describe(), "seed %d", seed)
				require.Equal(t, plain.describePairs(), s.describePairs(), "seed %d", seed)
				got := ""
				if s.object.Current != nil {
					got = s.object.Current.ETag
				}
				require.Equal(t, b.current(), got, "seed %d", seed)
				require.EqualValues(t, len(b.events), s.object.Events, "seed %d", seed)
				require.EqualValues(t, len(b.events), s.object.Duplicates, "seed %d", seed)
				queries += s.queries
				spilled += s.object.Spilled
			}
			require.Positive(t, queries)
			require.Positive(t, spilled)
		})
	}
}

// deliver ingests each event twice, in calls of one or more, some of them in one update.
func (b *modelBucket) deliver(tc historyTest, stores ...*objectStore) {
	order := make([]int, len(b.events))
	for i := range order {
		order[i] = i
	}
	again := b.rng.Perm(len(order))
	if !tc.isInOrder {
		order = b.rng.Perm(len(order))
	}
	for _, order := range [][]int{order, again} {
		for len(order) > 0 {
			var update [][]domain.ObjectEvent
			for range 1 + b.rng.IntN(3) {
				n := min(1+b.rng.IntN(3), len(order))
				if tc.isInOrder { // a call has an order of its own
					n = min(n, 1)
				}
				var call []domain.ObjectEvent
				for _, i := range order[:n] {
					call = append(call, b.events[i])
				}
				update, order = append(update, call), order[n:]
			}
			for _, s := range stores {
				s.ingest(update...)
				s.check()
			}
		}
	}
}
