package cosmos

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Peek and Dequeue compute the backlog after a bundle, and the age of the backlog, from documents that
// they read anyway: the head stores the number of events that a cabinet has received, and the gate stores
// the number of acknowledged events. The age is that of the oldest unacknowledged event. The number of
// this event in its cabinet determines where its time is found:
//
//   - If the event after the last bundle was read together with the bundle, as is usual in a large
//     backlog, the gate stores the time.
//   - Otherwise the event may be in a tail, with its time.
//   - Otherwise the head stores marks: the times of the last few Saves of the cabinet, or of the first
//     events of flushed pages. They suffice for a small backlog. The head also stores some older marks,
//     spaced so that the reported age is never too low, and seldom more than twice the true age.
//
// The computation needs no request, and the marks cost about a tenth of a request unit for each Save. A
// Dequeue reads no head: it counts from the newest head that this node has seen. If the head of the Peek
// was newer, the Dequeue returns the backlog that the Peek returned.

// millis is a time in milliseconds since 1970. 0 means unknown.
type millis int64

func millisOf(t time.Time) millis {
	if t.IsZero() {
		return 0
	}
	return millis(t.UnixMilli())
}

func (m millis) toTime() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// A mark stores the time at which an event was saved. The events between a mark and the next one were
// saved at that time or later.
type mark [2]int64 // number of the event in the cabinet, counted from 1, and its time in millis

// These constants limit the marks of a head. Every Peek reads the head, and every Save writes it twice, so
// the head must stay small: the more cabinets it has, the fewer marks each cabinet may have.
const (
	maxMarks = 16
	minMarks = 2
	allMarks = 256 // limit for the marks of a head with up to 128 cabinets
)

func marksPerCabinet(cabinets int) int {
	return max(minMarks, min(maxMarks, allMarks/max(cabinets, 1)))
}

// withMark returns the marks of a cabinet and a new mark for an event. If there are more than limit,
// withMark removes the mark whose removal changes the reported ages by the smallest ratio. It never
// removes the first mark, because earlier events would have no time, nor the last mark.
func (c cabinetState) withMark(number int64, saved millis, limit int) []mark {
	if saved == 0 {
		return c.Marks
	}
	marks := append(slices.Clone(c.Marks), mark{number, int64(saved)})
	marks = marks[max(0, len(marks)-allMarks):] // only a damaged head has more than allMarks
	for len(marks) > limit {
		least, at := math.Inf(1), 1
		for i := 1; i < len(marks)-1; i++ {
			if ratio := markAge(marks[i-1], saved) / markAge(marks[i+1], saved); ratio < least {
				least, at = ratio, i
			}
		}
		marks[at-1][1] = min(marks[at-1][1], marks[at][1]) // clocks differ
		marks = slices.Delete(marks, at, at+1)
	}
	return marks
}

// markAge returns the age of m in milliseconds, at least one second.
func markAge(m mark, now millis) float64 { return float64(max(int64(now)-m[1], 1000)) }

// savedAt returns when event n of the cabinet was saved, or an earlier time.
func (c cabinetState) savedAt(n int64) millis {
	if at := int(n - c.Total + int64(c.tailLen()) - 1); at >= 0 { // event n is in the tail
		if t, err := c.decodeTail(domain.CabinetKey{}); err == nil && t != nil && at < len(t.events) {
			return millisOf(t.events[at].Saved)
		}
	}
	at, found := slices.BinarySearchFunc(c.Marks, n, func(m mark, n int64) int { return cmp.Compare(m[0], n) })
	if found {
		at++
	}
	if at == 0 {
		return 0 // a version that wrote no marks saved the event
	}
	saved := c.Marks[at-1][1]
	for _, later := range c.Marks[at:] { // a node with a slow clock may have written an earlier time in a later mark
		saved = min(saved, later[1])
	}
	return millis(saved)
}

// backlogAfter returns the number and age of the events of a cabinet after a position.
func (c cabinetState) backlogAfter(at position) domain.Backlog {
	n := c.Total - at.Total
	if n <= 0 || at.Sequence >= c.Sequence {
		return domain.Backlog{}
	}
	oldest := at.NextSaved
	if oldest == 0 {
		oldest = c.savedAt(at.Total + 1)
	}
	return domain.Backlog{Events: n, Oldest: oldest.toTime()}
}

// backlogAfterGates returns the number and age of the events in h after the positions of the gates.
func (r *Repository) backlogAfterGates(h *head, gates map[domain.Group]*gate) domain.Backlog {
	var sum domain.Backlog
	for name, c := range h.Cabinets {
		group, err := r.groupOf(name)
		if g, isRequested := gates[group]; err == nil && isRequested {
			sum = sum.Plus(c.backlogAfter(g.positionIn(name, c)))
		}
	}
	return sum
}

// groupOf returns the group of a cabinet.
func (r *Repository) groupOf(name cabinetName) (domain.Group, error) {
	text, _, _ := strings.Cut(name, "|")
	origin, err := domain.ParseOrigin(text)
	if err != nil {
		return domain.Group{}, err
	}
	return r.opts.Groups.GroupOf(origin)
}

// BacklogAfter implements repository.Run.
func (r *eventRange) BacklogAfter(n int) domain.Backlog {
	b, _ := r.backlogAndWatermark(n)
	return b
}

// backlogAndWatermark returns the backlog after the first n events, and the watermark of the head from
// which it is counted: the newest head that this node has seen.
func (r *eventRange) backlogAndWatermark(n int) (domain.Backlog, domain.Sequence) {
	h := r.call.r.known.newestHead(r.cabinet.Recipient)
	if h == nil { // the cache has evicted the head
		h = r.head
	}
	gates := make(map[domain.Group]*gate, len(r.gates))
	for group, g := range r.gates {
		gates[group] = g
	}
	var nextSaved millis
	if r.open != nil && n == r.open.Count {
		nextSaved = r.open.NextSaved
	} else if next := r.eventAfter(n); next != nil {
		nextSaved = millisOf(next.Saved)
	}
	name := nameOf(r.cabinet)
	gates[r.group] = gates[r.group].assumeAcknowledged(name, h.Cabinets[name], n, nextSaved)
	return r.call.r.backlogAfterGates(h, gates), h.Watermark
}

// eventAfter returns the event after the first n events, if it was read together with them.
func (r *eventRange) eventAfter(n int) *repository.StoredEvent {
	switch r.yielded {
	case n:
		return r.beyond
	case n + 1:
		return r.last
	}
	return nil
}

// An openingBacklog stores the backlog at the time when a bundle was opened. It is used by nodes that have
// no newer head of the recipient in memory.
type openingBacklog struct {
	Groups []string        `json:"asked,omitempty"` // groups that the Peek requested; empty: all
	Events int64           `json:"events,omitempty"`
	Oldest millis          `json:"oldest,omitempty"`
	Seen   domain.Sequence `json:"seen"` // watermark

	Unknown client.UnknownMembers `json:",embed"`
}

// backlogOfNewBundle returns the backlog after a new bundle, in the form that the document of the bundle
// stores.
func (r *eventRange) backlogOfNewBundle(n int) openingBacklog {
	backlog, seen := r.backlogAndWatermark(n)
	b := openingBacklog{Events: backlog.Events, Oldest: millisOf(backlog.Oldest), Seen: seen}
	if all := r.call.r.opts.Groups.All(); len(r.gates) < len(all) {
		for _, group := range all {
			if r.gates[group] != nil {
				b.Groups = append(b.Groups, group.String())
			}
		}
	}
	return b
}

// backlogAfterDequeue returns the backlog after a bundle that has just been dequeued. It counts the groups that
// the Peek requested when it opened the bundle.
func (r *Repository) backlogAfterDequeue(recipient domain.ActorID, d *bundleDoc, gates map[domain.Group]*gate) domain.Backlog {
	h := r.known.newestHead(recipient)
	if h == nil || h.Watermark < d.Behind.Seen {
		return domain.Backlog{Events: d.Behind.Events, Oldest: d.Behind.Oldest.toTime()}
	}
	requested := make(map[domain.Group]*gate, len(gates))
	for group, g := range gates {
		if d.Behind.Groups != nil && !slices.Contains(d.Behind.Groups, group.String()) {
			continue
		}
		if g.Open == d.ID {
			g = g.advancePast(d, "")
		}
		requested[group] = g
	}
	return r.backlogAfterGates(h, requested)
}
