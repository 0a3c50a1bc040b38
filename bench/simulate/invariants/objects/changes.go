package objects

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
)

// objectOfChange returns the bucket and the key of the object with a resource name. The name is the base64url encoding
// of the byte 1, the length and text of the bucket, and the length and text of the key.
func objectOfChange(resource string) (bucket, key string, isObject bool) {
	name, isObject := strings.CutPrefix(resource, "/v1/objects/")
	b, err := base64.RawURLEncoding.DecodeString(name)
	if !isObject || err != nil || len(b) == 0 || b[0] != 1 {
		return "", "", false
	}
	rest := b[1:]
	next := func() string {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) { //nolint:gosec // not negative
			isObject = false
			return ""
		}
		text := string(rest[size : size+int(n)]) //nolint:gosec // at most the length of rest
		rest = rest[size+int(n):]                //nolint:gosec // likewise
		return text
	}
	bucket, key = next(), next()
	return bucket, key, isObject && len(rest) == 0
}

// noteChange records a stored change for its object, which must change in the same commit.
func (o *Observer) noteChange(k key, d *scopeDocument, existed bool, changed map[key]bool) {
	bucket, name, isObject := objectOfChange(d.Resource)
	switch {
	case existed:
		o.addViolation("P14", k, "a stored change was modified")
		return
	case !isObject || k.partition != shardOf(bucket, name, max(o.buckets[bucket], 1)):
		o.addViolation("layout", k, "it has the wrong resource %q", d.Resource)
		return
	}
	of := key{k.partition, idOf(name)}
	o.created[of] = append(o.created[of], *d)
	if _, is := changed[of]; !is {
		changed[of] = false
	}
}

// isMark reports whether the commit only marks the object as watched. A write that only marks an object has no write
// id.
func (j *objectCheck) isMark(rows []objectRow) bool {
	before, after := j.before, &j.doc
	if !after.IsWatched || before.commits == 0 || len(after.Writes) != len(before.doc.Writes) {
		return false
	}
	for i := range after.Writes {
		if after.Writes[i] != before.doc.Writes[i] {
			return false
		}
	}
	same := make(map[eventIdentity]objectRow)
	for _, r := range rows {
		same[r.identityOf()] = r
	}
	return maps.Equal(same, before.rows)
}

// changeState returns a copy of r with only the fields whose changes are notified to watches.
func (r *objectRow) changeState() objectRow {
	f := r.factsOf()
	f.Attributes, f.Reordered = r.Attributes, 0
	return f
}

// checkChanges checks the stored changes against P14: a commit stores exactly one change if it changes the current row
// of a watched object, and no change otherwise.
func (j *objectCheck) checkChanges() {
	before, after := &j.before.doc, &j.doc
	switch {
	case before.IsWatched && !after.IsWatched:
		j.addViolation("P14", "its mark that it is watched was removed")
	case !before.IsWatched && after.IsWatched && after.Current == nil:
		j.addViolation("P14", "it is watched, but has no current row")
	}
	event := ""
	switch {
	case !before.IsWatched || before.Current == nil:
	case after.Current == nil:
		event = "deleted"
	case after.Current.identityOf() != before.Current.identityOf(), after.Current.changeState() != before.Current.changeState():
		event = "updated"
	}
	want := before.Changes
	if event != "" {
		want++
		j.markReached("a watched object was changed")
	}
	if after.Changes != want {
		j.addViolation("P14", "it counts %d changes, want %d", after.Changes, want)
	}
	created := j.created[j.key]
	if int64(len(created)) != want-before.Changes {
		j.addViolation("P14", "%d changes are stored with it, want %d", len(created), want-before.Changes)
		return
	}
	for _, d := range created {
		if d.Event != event || d.Number != want || !strings.HasSuffix(d.ID, fmt.Sprintf(".%020d", want)) {
			j.addViolation("P14", "the stored change %s is number %d, %s; want number %d, %s", d.ID, d.Number, d.Event, want, event)
		}
	}
}
