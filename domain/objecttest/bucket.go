package objecttest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Bucket simulates a bucket with one object, and reports the events of the object. The state of
// the bucket shows which version is current, independently of the rules of the hub.
type Bucket struct {
	Events    []domain.ObjectEvent // reported events, the oldest first
	rng       *rand.Rand
	mode      bucketMode
	versions  []modelVersion // stored versions, the oldest first
	sequencer int
	ids       int
	now       time.Time
	at        time.Time     // time of the next action; zero: a random time after the previous action
	grain     time.Duration // resolution of the times of events
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
	change   string // ETag of the last event that changed this version
}

// RandomBucket returns a bucket after 1 to limit random actions. With nulls, lifecycle rules and
// listings are among the actions; their events have no sequencers. The times of events are
// multiples of grain.
func RandomBucket(rng *rand.Rand, limit int, nulls bool, grain time.Duration) *Bucket {
	b := &Bucket{rng: rng, mode: bucketMode(rng.IntN(3)), now: FirstMoment, grain: grain, hasNulls: nulls}
	for range 1 + rng.IntN(limit) {
		b.changeObject()
	}
	return b
}

// Act carries out a random action at a time and returns the events that the bucket reports. An
// action that is not possible in the current state reports no events.
func (b *Bucket) Act(at time.Time) []domain.ObjectEvent {
	n := len(b.Events)
	b.at = at
	b.changeObject()
	return b.Events[n:]
}

// Latest returns the latest version of the object, and the ETag of the last event that changed this
// version. isMarker reports that the version is a delete marker. exists is false if the object has no
// version.
func (b *Bucket) Latest() (id domain.VersionID, isMarker bool, eTag string, exists bool) {
	n := len(b.versions)
	if n == 0 {
		return domain.VersionID{}, false, "", false
	}
	v := &b.versions[n-1]
	return v.id, v.isMarker, v.change, true
}

func (b *Bucket) changeObject() {
	n := 7
	if b.hasNulls {
		n = 12
	}
	switch b.rng.IntN(n) {
	case 0, 1, 2:
		b.putVersion()
	case 3, 4:
		b.deleteCurrent(true)
	case 5:
		b.deleteVersion(b.rng.IntN(len(b.versions)+1), true)
	case 6: // enable versioning, suspend it, or enable it again
		switch {
		case b.mode == versioned:
			b.mode = suspended
		case b.mode == suspended || b.rng.IntN(4) == 0:
			b.mode = versioned
		}
	case 7, 8:
		b.changeStorageClass()
	case 9:
		if n := len(b.versions); n > 0 && !b.versions[n-1].isMarker {
			b.deleteCurrent(false)
		}
	case 10: // a lifecycle rule deletes noncurrent versions, and a delete marker that hides no version
		if n := len(b.versions); n > 1 {
			b.deleteVersion(b.rng.IntN(n-1), false)
		} else if n == 1 && b.versions[0].isMarker {
			b.deleteVersion(0, false)
		}
	case 11:
		b.listObject()
	}
}

// listObject reports an event for the object as a listing of the bucket does, if the object exists.
func (b *Bucket) listObject() {
	if n := len(b.versions); n > 0 && !b.versions[n-1].isMarker {
		v := &b.versions[n-1]
		v.change = b.addEvent(v.id, domain.ObjectCreated, false, false)
		b.Events[len(b.Events)-1].Reason = domain.Crawl
	}
}

// addEvent adds an event to Events, and returns the ETag of the event.
func (b *Bucket) addEvent(v domain.VersionID, kind domain.ObjectEventType, isMarker, isNative bool) string {
	b.now = b.now.Add(time.Duration(1+b.rng.IntN(900)) * time.Millisecond)
	at := b.now.Truncate(b.grain)
	if !b.at.IsZero() {
		at = b.at
	}
	e := domain.ObjectEvent{
		Version: v, Type: kind, Marker: isMarker, Time: at,
		ObjectFacts: domain.ObjectFacts{ETag: fmt.Sprint(len(b.Events))},
	}
	if isNative {
		b.sequencer += 1 + b.rng.IntN(40)
		text := fmt.Sprintf("%04X", b.sequencer)
		if b.rng.IntN(3) == 0 {
			text = strings.TrimRight(text, "0") // the order of sequencers does not depend on trailing zeros
		}
		e.Sequencer = must(domain.ParseSequencer(domain.HexSequencer, text))
	} else {
		e.Carrier = domain.Carrier{Message: "m", Index: len(b.Events)}
	}
	b.Events = append(b.Events, e)
	return e.ETag
}

// newVersion returns the id for a new version. If it is the null version, newVersion removes the
// old null version.
func (b *Bucket) newVersion() domain.VersionID {
	if b.mode == versioned {
		b.ids++
		return must(domain.ParseVersionID(fmt.Sprint("v", b.rng.IntN(10), b.ids)))
	}
	b.versions = slices.DeleteFunc(b.versions, func(v modelVersion) bool { return v.id == domain.VersionID{} })
	return domain.VersionID{}
}

func (b *Bucket) putVersion() {
	id := b.newVersion()
	change := b.addEvent(id, domain.ObjectCreated, false, true)
	b.versions = append(b.versions, modelVersion{id: id, change: change})
}

// deleteCurrent deletes the object without naming a version. An unversioned bucket deletes the
// data, and any other bucket adds a delete marker.
func (b *Bucket) deleteCurrent(isNative bool) {
	if b.mode == unversioned {
		if len(b.versions) > 0 {
			b.deleteVersion(0, isNative)
		}
		return
	}
	id := b.newVersion()
	change := b.addEvent(id, domain.ObjectDeleted, true, isNative)
	b.versions = append(b.versions, modelVersion{id: id, isMarker: true, change: change})
}

func (b *Bucket) deleteVersion(i int, isNative bool) {
	if i >= len(b.versions) {
		return
	}
	b.addEvent(b.versions[i].id, domain.ObjectDeleted, false, isNative)
	b.versions = slices.Delete(b.versions, i, i+1)
}

// changeStorageClass changes the storage class of a random version.
func (b *Bucket) changeStorageClass() {
	if len(b.versions) == 0 {
		return
	}
	v := &b.versions[b.rng.IntN(len(b.versions))]
	if !v.isMarker {
		v.change = b.addEvent(v.id, domain.ObjectCreated, false, false)
	}
}

// Current returns the ETag of the last event that changed the current version, or "" if the object
// does not exist.
func (b *Bucket) Current() string {
	if n := len(b.versions); n > 0 && !b.versions[n-1].isMarker {
		return b.versions[n-1].change
	}
	return ""
}
