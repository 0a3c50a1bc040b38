package cosmos

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/messagehub/messagehub/domain"
)

// The span in which events were saved is stored once for each Save, in the member "saves": for events in a
// page, this is a member of the page; for events in a tail, it is a member of the cabinet in the head. A
// flush moves the spans together with the events. Only spans of sampled traces are stored, without trace
// state, and only if Options.StoreTraces is true. They add about 32 bytes to a Save.
//
// A span consists of 16 random bytes for the trace and 8 random bytes for the span, so it cannot be
// compressed. The additional cost of a Save of one event is 0.8 RU if every trace is sampled. Almost all of
// this cost is caused by the head, because each Save also writes the spans of up to Options.TailEvents
// earlier Saves again. A separate document would cost 5 RU for each Save. If spans were only in memory, a
// Peek on another node would not find them. The trace state, even if truncated to 256 bytes, would increase
// the cost tenfold; a link to a span does not need it.
//
// The hub does not guarantee that spans are retained. A version that does not know spans discards the spans
// of the tails that it flushes. Spans that cannot be decoded count as missing.
//
// The spans are encoded in one byte string. For each run of slots, it contains a uvarint: the number of
// slots times 4, plus
//
//	0  no span is known
//	1  the trace, 16 bytes, and the span, 8 bytes, follow
//	2  the span, 8 bytes, follows; the trace is that of the previous run
//
// Slots after the last run have no span. In a head, two uvarints precede the runs: the ordinal of the
// drawer and the first slot. They reveal whether a version that does not know spans has continued the tail
// in a new drawer.
const (
	noSpan = iota
	newTrace
	sameTrace
)

// A saveRun is a range of slots whose events were saved in the same span.
type saveRun struct {
	from, until int
	span        domain.TraceContext
}

// appendSaves appends the encoded runs to data. The runs must be in order, and from is the first slot of
// the encoding.
func appendSaves(data []byte, from int, runs []saveRun) []byte {
	var last domain.TraceID
	for _, r := range runs {
		if r.from > from {
			data = binary.AppendUvarint(data, uint64(r.from-from)<<2+noSpan) //nolint:gosec // positive
		}
		kind := uint64(newTrace)
		if r.span.TraceID == last {
			kind = sameTrace
		}
		data = binary.AppendUvarint(data, uint64(r.until-r.from)<<2|kind) //nolint:gosec // positive
		if kind == newTrace {
			data = append(data, r.span.TraceID[:]...)
		}
		data = append(data, r.span.SpanID[:]...)
		last, from = r.span.TraceID, r.until
	}
	return data
}

// decodeSaves decodes runs. from is the first slot of the encoding. It returns nil if data cannot be
// decoded.
func decodeSaves(data []byte, from int) []saveRun {
	d := decoder{b: data}
	var runs []saveRun
	var last domain.TraceID
	for len(d.b) > 0 {
		head := d.readUvarint()
		n := head >> 2
		if n == 0 || n > maxSlots {
			return nil
		}
		r := saveRun{from: from, until: from + int(n), span: domain.TraceContext{Sampled: true}}
		from = r.until
		switch head & 3 {
		case noSpan:
			continue
		case newTrace:
			d.readInto(last[:])
		case sameTrace:
		default:
			return nil
		}
		r.span.TraceID = last
		d.readInto(r.span.SpanID[:])
		if d.failed || r.span.IsZero() || from > maxSlots {
			return nil
		}
		runs = append(runs, r)
	}
	return runs
}

// savesOf returns the spans of events as runs. slot is the slot of the first event.
func savesOf(events []numberedEvent, slot int) []saveRun {
	var runs []saveRun
	for i := range events {
		if span := events[i].save; span != nil {
			runs = appendRun(runs, saveRun{slot + i, slot + i + 1, *span})
		}
	}
	return runs
}

// appendRun appends r to runs. If r continues the last run with the same span, appendRun extends that run
// instead.
func appendRun(runs []saveRun, r saveRun) []saveRun {
	if n := len(runs); n > 0 && runs[n-1].until == r.from && runs[n-1].span == r.span {
		runs[n-1].until = r.until
		return runs
	}
	return append(runs, r)
}

// clipSaves returns the parts of runs that are in the slots [from, until).
func clipSaves(runs []saveRun, from, until int) []saveRun {
	var clipped []saveRun
	for _, r := range runs {
		if r.from, r.until = max(r.from, from), min(r.until, until); r.from < r.until {
			clipped = append(clipped, r)
		}
	}
	return clipped
}

// encodeSaves encodes runs for a page. It returns nil if runs is empty.
func encodeSaves(runs []saveRun, from int) packed {
	if len(runs) == 0 {
		return nil
	}
	return appendSaves(nil, from, runs)
}

// encodeTailSaves encodes the runs of a tail for the field Saves of a cabinetState.
func (c cabinetState) encodeTailSaves(runs []saveRun) packed {
	if len(runs) == 0 {
		return nil
	}
	data := binary.AppendUvarint(nil, uint64(c.Ordinal))   //nolint:gosec // positive
	data = binary.AppendUvarint(data, uint64(c.inPages())) //nolint:gosec // not negative
	return appendSaves(data, c.inPages(), runs)
}

// tailSaves decodes the spans in which the events of the tail were saved.
func (c cabinetState) tailSaves() []saveRun {
	if len(c.Saves) == 0 || len(c.Tail) == 0 {
		return nil
	}
	d := decoder{b: c.Saves}
	ordinal, from := d.readUvarint(), d.readUvarint()
	if d.failed || ordinal != uint64(c.Ordinal) || from > maxSlots { //nolint:gosec // positive
		return nil
	}
	return clipSaves(decodeSaves(d.b, int(from)), c.inPages(), c.Fill)
}

// saveRuns decodes the spans in which the events of p were saved.
func (p *drawerPage) saveRuns() []saveRun {
	return clipSaves(decodeSaves(p.Saves, p.Slot), p.Slot, p.Until)
}

// pageSaves collects the spans in the pages of a run. It is safe for concurrent use, because drawers are
// read concurrently.
type pageSaves struct {
	mu   sync.Mutex
	runs map[int][]saveRun // by ordinal of the drawer
}

// add adds the spans in a page.
func (s *pageSaves) add(ordinal int, p *drawerPage) {
	runs := p.saveRuns()
	if len(runs) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		s.runs = make(map[int][]saveRun)
	}
	s.runs[ordinal] = append(s.runs[ordinal], runs...)
}

// Saves implements repository.Run.
func (r *eventRange) Saves(n, limit int) []domain.TraceContext {
	if !r.call.r.opts.StoreTraces {
		return nil
	}
	r.saves.mu.Lock()
	defer r.saves.mu.Unlock()
	var spans []domain.TraceContext
	for _, s := range r.slotRanges(n) {
		runs := clipSaves(r.saves.runs[s.Ordinal], s.From, s.To)
		slices.SortStableFunc(runs, func(a, b saveRun) int { return a.from - b.from })
		if r.tail != nil && r.tail.drawer == s.Drawer {
			runs = append(runs, clipSaves(r.tail.saves, s.From, s.To)...)
		}
		for _, run := range runs {
			if len(spans) == limit {
				return spans
			}
			if !slices.Contains(spans, run.span) {
				spans = append(spans, run.span)
			}
		}
	}
	return spans
}

// encodeSpan encodes a span for a bundle or a notice. It returns nil for the zero span.
func encodeSpan(c domain.TraceContext) packed { return c.AppendStored(nil) }

// decodeSpan decodes a span that encodeSpan has encoded. It returns the zero span if p is empty.
func (p packed) decodeSpan() domain.TraceContext { return domain.ParseStored(p) }
