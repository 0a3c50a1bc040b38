package push

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
)

// A streamState is the known state of a stream.
type streamState struct {
	name    string
	entries map[int][]uint64  // hashes of all entries, by priority and number
	tails   map[string]int64  // number of the first entry in the head, by partition and priority
	sealed  map[string]string // heads of sealed segments by partition, without the members that the engine adds
}

type streamHead struct {
	Sealed     bool `json:"sealed"`
	Priorities map[string]struct {
		First int64     `json:"first"`
		Runs  []pageRun `json:"runs"`
	} `json:"priorities"`
}

type streamPage struct {
	First int64     `json:"first"`
	Runs  []pageRun `json:"runs"`
}

type pageRun struct {
	WriteID   string            `json:"w"`
	Published int64             `json:"at"`
	Entries   []json.RawMessage `json:"e"`
}

// checkStream checks a commit to a segment of a stream. It checks pages before the head, because the entries in the head
// follow the entries in the pages.
func (o *Observer) checkStream(changes []partitionChange) {
	partition := changes[0].partition
	i := strings.LastIndex(partition, "|")
	if i < 0 {
		o.addViolation("layout", changes[0], "a partition of a stream ends with a segment")
		return
	}
	s := o.streams[partition[:i]]
	if s == nil {
		s = &streamState{name: partition[:i], entries: make(map[int][]uint64), tails: make(map[string]int64), sealed: make(map[string]string)}
		o.streams[partition[:i]] = s
	}
	if sealed, isSealed := s.sealed[partition]; isSealed {
		for _, c := range changes {
			// A node may write a head without a change, to find out whether its read was stale.
			isSame := c.id == "head" && o.withoutSystem(c) == sealed
			if c.json != nil && !isSame && !strings.HasPrefix(c.id, "id|") {
				o.addViolation("P1", c, "the segment changed after it was sealed")
			}
		}
		return
	}
	for _, c := range changes {
		if rest, isPage := strings.CutPrefix(c.id, "page-"); isPage && c.json != nil {
			o.checkPage(s, c, rest)
		}
	}
	for _, c := range changes {
		if c.id == "head" && c.json != nil {
			o.checkHead(s, c)
		}
	}
}

// withoutSystem returns a document without the members that the engine adds.
func (o *Observer) withoutSystem(c partitionChange) string {
	var members map[string]json.RawMessage
	if c.json == nil || !o.decodeInto(c, &members) {
		return ""
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return strings.HasPrefix(name, "_") })
	text, err := json.Marshal(members)
	if err != nil {
		o.addViolation("layout", c, "%v", err)
	}
	return string(text)
}

func (o *Observer) checkPage(s *streamState, c partitionChange, rest string) {
	var p streamPage
	text, _, _ := strings.Cut(rest, "-")
	priority, err := strconv.Atoi(text)
	if err != nil || !o.decodeInto(c, &p) {
		o.addViolation("layout", c, "the id of a page does not begin with a priority")
		return
	}
	o.checkEntries(s, c, priority, p.First, p.Runs)
}

func (o *Observer) checkHead(s *streamState, c partitionChange) {
	var h streamHead
	if !o.decodeInto(c, &h) {
		return
	}
	for name, t := range h.Priorities {
		priority, err := strconv.Atoi(name)
		if err != nil {
			o.addViolation("layout", c, "priority %q", name)
			continue
		}
		key := fmt.Sprintf("%s %s", c.partition, name)
		if t.First < s.tails[key] {
			o.addViolation("P1", c, "the tail of priority %s went back from entry %d to %d", name, s.tails[key], t.First)
		}
		s.tails[key] = t.First
		o.checkEntries(s, c, priority, t.First, t.Runs)
		n := t.First
		for _, r := range t.Runs {
			n += int64(len(r.Entries))
		}
		if known := int64(len(s.entries[priority])); n != known {
			o.addViolation("P1", c, "priority %s has %d entries, but had %d", name, n, known)
		}
	}
	if h.Sealed {
		if s.sealed[c.partition] == "" {
			o.markReached("a segment of a stream was sealed")
		}
		s.sealed[c.partition] = o.withoutSystem(c)
	}
}

// checkEntries compares entries with the known entries of the same numbers, and records new entries.
func (o *Observer) checkEntries(s *streamState, c partitionChange, priority int, first int64, runs []pageRun) {
	n := first
	for _, r := range runs {
		for _, e := range r.Entries {
			h := fnv.New64a()
			_, _ = fmt.Fprintf(h, "%s %d %s", r.WriteID, r.Published, e) // writing to a hash never fails
			sum, known := h.Sum64(), int64(len(s.entries[priority]))
			switch {
			case n < known && s.entries[priority][n] != sum:
				o.addViolation("P1", c, "entry %d.%d has changed", priority, n)
			case n == known:
				s.entries[priority] = append(s.entries[priority], sum)
				o.checkPublishedChange(s.name, c, n, e)
			case n > known:
				o.addViolation("P1", c, "entry %d.%d follows %d", priority, n, known-1)
			}
			n++
		}
	}
}
