package cosmos

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An eventRange is a range of slots of a cabinet: either the slots of an open bundle, or the slots that a
// new bundle may contain.
type eventRange struct {
	call    *call
	group   domain.Group
	cabinet domain.CabinetKey
	parts   []weightedRange // one range for each drawer; at most drawersPerBundle

	tail *tail // tail of the cabinet in the head from which the range was computed, or nil

	gate  *gate    // gate that a new bundle replaces; nil for an open bundle
	start position // position of the gate in the cabinet

	first *chunk // events that peekFirst has read; forEach yields these events without another read

	head   *head                  // head from which the range was computed
	gates  map[domain.Group]*gate // gates of all requested groups
	before domain.Sequence        // the range contains only smaller numbers, so that it overtakes no event of another cabinet; 0: no limit
	open   *bundleDoc             // document of the open bundle with this range, or nil
	saves  pageSaves              // spans of the pages that were read; empty if spans are not stored

	yielded int                     // number of events that the last iteration yielded
	last    *repository.StoredEvent // last event that the last iteration yielded
	beyond  *repository.StoredEvent // event that follows last in the same drawer, or nil if it was not read
}

// A weightedRange is a range of slots of one drawer with their estimated weight.
type weightedRange struct {
	slotRange
	weight domain.Weight
}

// A chunk contains the events of the first read of a range, and a reader for the remaining events.
type chunk struct {
	events []storedEvent
	rest   *drawerReader
}

// Group implements repository.Run.
func (r *eventRange) Group() domain.Group { return r.group }

// Cabinet implements repository.Run.
func (r *eventRange) Cabinet() domain.CabinetKey { return r.cabinet }

// Folder implements repository.Run. It returns the payload folder of the first drawer, because a sweep
// removes this folder together with the drawer.
func (r *eventRange) Folder() string { return payloadFolder(r.parts[0].Drawer) }

// newRun returns the range of the events after the position at, in up to drawersPerBundle drawers. The
// range includes only events that certainly exist, and may be empty if a read was stale. Drawers with an
// ordinal below floor may have been removed.
func (c *call) newRun(ctx context.Context, group domain.Group, cabinet domain.CabinetKey, last cabinetState, floor int, g *gate, at position) (*eventRange, error) {
	from := max(at.Ordinal, floor, 1)
	if isInTail(last, at) {
		from = last.Ordinal
	}
	extents, err := c.extentsOfRun(ctx, cabinet, last, from, at)
	if err != nil {
		return nil, err
	}
	r := &eventRange{call: c, group: group, cabinet: cabinet, gate: g, start: at}
	if r.tail, err = last.decodeTail(cabinet); err != nil {
		return nil, domain.Errorf(domain.Damaged, "cabinet %s: %w", cabinetKey(cabinet), err)
	}
	for _, e := range extents {
		s := weightedRange{slotRange: slotRange{Drawer: e.drawer, Ordinal: e.ordinal, To: e.limit}, weight: e.weight}
		if e.ordinal == at.Ordinal {
			s.From = at.Slot
			if e.count > 0 {
				s.weight = e.weight * domain.Weight(max(0, e.count-s.From)) / domain.Weight(e.count)
			}
		}
		if s.From < s.To && len(r.parts) < drawersPerBundle {
			r.parts = append(r.parts, s)
		}
	}
	return r, nil
}

// readDrawer returns a reader for the given slots of the run.
func (r *eventRange) readDrawer(s slotRange) *drawerReader {
	d := r.call.readDrawer(r.cabinet, s, r.tail)
	if r.gate != nil && r.call.r.opts.StoreTraces {
		d.saves = &r.saves
	}
	return d
}

// peekFirst reads the first event of the range. It returns client.ErrNotYetVisible if a stale read
// returned no events.
func (r *eventRange) peekFirst(ctx context.Context) (*storedEvent, error) {
	if len(r.parts) == 0 {
		return nil, client.ErrNotYetVisible
	}
	read := r.readDrawer(r.parts[0].slotRange)
	events, err := read.readNext(ctx)
	if err != nil {
		return nil, err
	}
	r.first = &chunk{events, read}
	return &events[0], nil
}

// Events implements repository.Run.
func (r *eventRange) Events(ctx context.Context) iter.Seq2[repository.StoredEvent, error] {
	return func(yield func(repository.StoredEvent, error) bool) {
		r.yielded, r.last, r.beyond = 0, nil, nil
		err := r.forEach(ctx, func(e *storedEvent) bool {
			r.yielded++
			r.last = &e.StoredEvent
			return yield(e.StoredEvent, nil)
		})
		if (errors.Is(err, client.ErrStale) || domain.KindOf(err) == domain.Damaged) && r.gate != nil && r.yielded > 0 {
			return // a stale read or a lost page causes a gap; a new bundle may end before the gap
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(repository.StoredEvent{}, client.Classify("read events of "+cabinetKey(r.cabinet), err))
		}
	}
}

var errStopped = errors.New("the reader of a run has stopped")

// sequentialEvents is the number of events that are read sequentially before the remaining drawers are
// read concurrently.
const sequentialEvents = 2000

// aheadPages is the number of result pages in the first request to each drawer except the first one. If
// large Saves stored the events, one request reads the whole drawer.
const aheadPages = 4 * firstPages

// forEach calls yield for every event. It reads the first result pages sequentially, because a bundle may
// be a single event. After sequentialEvents events, it reads the remaining drawers concurrently, each up
// to the weight that the bundle may still need.
func (r *eventRange) forEach(ctx context.Context, yield func(*storedEvent) bool) error {
	if err := ctx.Err(); err != nil {
		return domain.Errorf(domain.Unavailable, "%w", err)
	}
	if len(r.parts) == 0 {
		return nil
	}
	give := func(events []storedEvent) error {
		for i := range events {
			if r.before > 0 && events[i].Sequence >= r.before {
				r.beyond = &events[i].StoredEvent
				return errStopped
			}
			if !yield(&events[i]) {
				if i+1 < len(events) {
					r.beyond = &events[i+1].StoredEvent
				}
				return errStopped
			}
		}
		return nil
	}
	begin := r.first
	r.first = nil
	if begin == nil {
		read := r.readDrawer(r.parts[0].slotRange)
		read.patient = r.gate == nil
		events, err := read.readNext(ctx)
		if err != nil {
			return err
		}
		begin = &chunk{events, read}
	}
	if err := give(begin.events); err != nil {
		return err
	}

	for len(begin.events) < sequentialEvents && !begin.rest.isDone() {
		events, err := begin.rest.readNext(ctx)
		if err != nil {
			return err
		}
		if err := give(events); err != nil {
			return err
		}
		begin = &chunk{append(slices.Clip(begin.events), events...), begin.rest}
	}

	ahead := r.readAhead(ctx, begin)
	defer ahead.stop()
	for i := range ahead.drawers {
		d := &ahead.drawers[i]
		<-d.ready
		if err := give(d.events); err != nil {
			return err
		}
		if d.err != nil {
			return d.err
		}
		for !d.read.isDone() { // the estimated weight of the drawer was too low
			events, err := d.read.readNext(ctx)
			if err != nil {
				return err
			}
			if err := give(events); err != nil {
				return err
			}
		}
	}
	return nil
}

// A readAhead reads the remaining drawers of a range concurrently.
type readAhead struct {
	drawers []aheadDrawer
	cancel  context.CancelFunc
	group   *errgroup.Group
}

type aheadDrawer struct {
	read   *drawerReader
	need   domain.Weight // weight of the events in this drawer that the bundle may need
	events []storedEvent
	err    error
	ready  chan struct{} // closed after events and err were set
}

func (r *eventRange) readAhead(ctx context.Context, begin *chunk) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &readAhead{cancel: cancel, group: new(errgroup.Group)}
	var weightRead, before domain.Weight
	for i := range begin.events {
		weightRead = weightRead.Add(begin.events[i].Weight)
	}
	for i, s := range r.parts {
		d := aheadDrawer{need: domain.MaxBundleWeight - min(before, domain.MaxBundleWeight), ready: make(chan struct{})}
		if i == 0 {
			d.read = begin.rest
			d.read.size = max(d.read.size, aheadPages)
			d.need -= min(weightRead, d.need)
			before = max(weightRead, s.weight)
		} else {
			d.read = r.readDrawer(s.slotRange)
			d.read.size = aheadPages
			d.read.patient = r.gate == nil
			before = before.Add(s.weight)
		}
		if r.gate == nil { // an open bundle needs all its slots
			d.need = math.MaxInt64
		}
		a.drawers = append(a.drawers, d)
	}
	for i := range a.drawers {
		d := &a.drawers[i]
		a.group.Go(func() error {
			defer close(d.ready)
			d.fetchEvents(ctx)
			return nil
		})
	}
	return a
}

// fetchEvents reads events until their weight reaches d.need or the drawer ends. It stops at the first
// error; the bundle may still contain the events before the error.
func (d *aheadDrawer) fetchEvents(ctx context.Context) {
	for weight := domain.Weight(0); weight < d.need && !d.read.isDone(); {
		events, err := d.read.readNext(ctx)
		if err != nil {
			d.err = err
			return
		}
		for i := range events {
			weight = weight.Add(events[i].Weight)
		}
		if d.events == nil {
			d.events = events
		} else {
			d.events = append(d.events, events...)
		}
	}
}

// stop cancels the reads and waits until they have ended.
func (a *readAhead) stop() {
	a.cancel()
	_ = a.group.Wait()
}

// isInTail reports whether a slot of a drawer is in the tail of the range or after the tail.
func (r *eventRange) isInTail(drawer string, slot int) bool {
	return r.tail != nil && r.tail.drawer == drawer && slot >= r.tail.paged
}

// slotRanges returns the slots of the first n yielded events.
func (r *eventRange) slotRanges(n int) []slotRange {
	var found []slotRange
	for _, s := range r.parts {
		if n == 0 {
			break
		}
		take := min(n, s.To-s.From)
		inTail := r.isInTail(s.Drawer, s.From)
		found = append(found, slotRange{Drawer: s.Drawer, Ordinal: s.Ordinal, From: s.From, To: s.From + take, InTail: inTail})
		n -= take
	}
	return found
}
