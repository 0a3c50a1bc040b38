package cosmos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A recipientCheck reads all documents of a recipient once.
type recipientCheck struct {
	c         *mailboxChecker
	recipient domain.ActorID

	h       *head
	gates   map[domain.Group]*gate
	changed bool // head or gates changed during the check, or the head has an intent
	ids     *idSet

	filtered   map[string]*filteredDrawer // parts of the recipient's filter, by drawer
	filterETag azcore.ETag

	open int64

	mu       sync.Mutex // guards the following fields
	findings []finding
	at       map[findingKey]bool // keys of the findings
	drawers  int64
	events   int64
	reading  chan struct{} // limits the number of drawers that are read concurrently
}

// A findingKey identifies a finding among the findings of one recipient.
type findingKey struct{ kind, where string }

func newRecipientCheck(c *mailboxChecker, recipient domain.ActorID) *recipientCheck {
	return &recipientCheck{c: c, recipient: recipient, at: make(map[findingKey]bool), reading: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// addFinding adds a finding. A finding without a repair is damage. A finding counts only if two checks
// report it with the same kind and place. So where must distinguish it from a similar finding shortly
// afterwards: it names the bundle of a gate, not just the gate, which may open another bundle. addFinding
// stores one finding for each kind and place, and at most maxFindings, because one wrong number can make a
// million events look wrong.
func (l *recipientCheck) addFinding(rule, kind, where string, repair func(context.Context, *call) error, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := findingKey{kind, where}
	if l.at[at] || len(l.at) == maxFindings {
		return
	}
	l.at[at] = true
	l.findings = append(l.findings, finding{
		Finding: repository.Finding{
			Rule: rule, Kind: kind, Recipient: l.recipient.String(), Where: where,
			Text: fmt.Sprintf(format, args...), Damage: repair == nil,
		},
		repair: repair,
	})
}

func (l *recipientCheck) hasFinding(f *finding) bool { return l.at[findingKey{f.Kind, f.Where}] }

// agreesWith reports whether l has the same findings as another check, and the mailbox changed during
// neither check.
func (l *recipientCheck) agreesWith(other *recipientCheck) bool {
	return other != nil && !l.changed && !other.changed && len(l.findings) == len(other.findings) && len(l.confirmedBy(other)) == len(l.findings)
}

// mayBeStale reports whether l has found damage that stale reads can explain, because one part of the store
// lags behind the other parts by some seconds. Such damage counts only if all maxChecks checks find it.
func (l *recipientCheck) mayBeStale() bool {
	return l.c.r.db.ReadsMayBeStale() && slices.ContainsFunc(l.findings, func(f finding) bool { return f.Damage })
}

// confirmedBy returns the findings that the other check also has. If the mailbox changed during l,
// confirmedBy omits findings about hints, because hints may be updated later. Findings about a tail are
// not omitted: a tail is in the head, so it is not a hint.
func (l *recipientCheck) confirmedBy(other *recipientCheck) []finding {
	if other == nil {
		return nil
	}
	var confirmed []finding
	for i := range l.findings {
		if f := &l.findings[i]; other.hasFinding(f) && (f.Damage || f.Kind == tailLeft || !l.changed) {
			confirmed = append(confirmed, *f)
		}
	}
	return confirmed
}

// checkAll checks head, gates, cabinets and catalog.
func (l *recipientCheck) checkAll(ctx context.Context) error {
	c := l.beginCall()
	notices, err := l.readNotices(ctx) // read before the gates, so that no notice is newer than its gate
	if err != nil {
		return err
	}
	if l.h, err = c.readHead(ctx, l.recipient); err != nil {
		return err
	}
	l.gates = make(map[domain.Group]*gate)
	if err := c.readGates(ctx, l.recipient, l.c.r.opts.Groups.All(), l.gates); err != nil {
		return err
	}
	bundles, err := l.checkBundles(ctx)
	if err != nil {
		return err
	}
	l.checkOutbox(notices, bundles)
	if l.h.Watermark > l.h.Reserved {
		l.addFinding("H5", headWrong, "head", nil, "the watermark %d is above the reserved number %d", l.h.Watermark, l.h.Reserved)
	}
	if l.c.r.opts.TailEvents <= 0 && l.h.hasTail() {
		l.addFinding("", tailLeft, "head", func(ctx context.Context, c *call) error {
			return c.Retry(ctx, func() error { return c.flushAll(ctx, l.recipient) })
		},
			"the head has a tail, although tails are switched off; versions that do not know tails cannot serve the recipient")
	}
	if err := l.readFilter(ctx); err != nil {
		return err
	}
	l.ids = newIDSet(l.c.opts.MaxIDBytes)
	scans, err := l.checkCabinets(ctx, bundles)
	if err != nil {
		return err
	}
	if err := l.checkCatalog(ctx, scans); err != nil {
		return err
	}
	for l.ids != nil {
		if err := l.findDuplicates(ctx, scans); err != nil {
			return err
		}
		if l.ids = l.ids.nextPass(); l.ids == nil {
			break
		}
		if err := l.readAgain(ctx, scans); err != nil {
			return err
		}
	}
	return l.checkUnchanged(ctx)
}

func (l *recipientCheck) beginCall() *call { return l.c.r.beginCall("check") }

// checkUnchanged records in l.changed whether head or gates have changed since they were read.
func (l *recipientCheck) checkUnchanged(ctx context.Context) error {
	if len(l.findings) == 0 {
		return nil
	}
	c := l.beginCall()
	h, err := c.readHead(ctx, l.recipient)
	if err != nil {
		return err
	}
	gates := make(map[domain.Group]*gate)
	if err := c.readGates(ctx, l.recipient, l.c.r.opts.Groups.All(), gates); err != nil {
		return err
	}
	l.changed = h.etag != l.h.etag || h.Intent != nil
	for group, g := range gates {
		l.changed = l.changed || g.ETag != l.gates[group].ETag
	}
	return nil
}

// checkBundles checks the gates and the open bundles, and returns the open bundles.
func (l *recipientCheck) checkBundles(ctx context.Context) (map[cabinetName]*bundleDoc, error) {
	found, err := client.All[bundleDoc](ctx, l.beginCall().Query(l.c.r.db.bundles, l.recipient.String(),
		"SELECT * FROM c WHERE c.kind = @kind AND (c.state = @open OR c.state = @dequeued AND c.content = @request AND NOT IS_DEFINED(c.object))",
		azcosmos.QueryParameter{Name: "@kind", Value: bundleKind}, azcosmos.QueryParameter{Name: "@open", Value: stateOpen},
		azcosmos.QueryParameter{Name: "@dequeued", Value: stateDequeued}, azcosmos.QueryParameter{Name: "@request", Value: string(domain.Request)}))
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*bundleDoc, len(found))
	for _, d := range found {
		if d.State == stateDequeued {
			l.addFinding("H7", bundleWrong, "bundle "+d.ID, nil, "the bundle was dequeued, but its domain never produced its content")
			continue
		}
		byID[d.ID] = d
	}
	open := make(map[cabinetName]*bundleDoc)
	raise := func(ctx context.Context, c *call) error { return c.raiseHead(ctx, l.recipient) }
	for _, group := range slices.SortedFunc(maps.Keys(l.gates), func(a, b domain.Group) int { return strings.Compare(a.String(), b.String()) }) {
		g := l.gates[group]
		if g.Removed > l.h.Watermark {
			l.addFinding("H1", gateInFront, fmt.Sprintf("%s, number %d", g.ID, g.Removed), raise,
				"the gate is past number %d, but only numbers up to %d were received; %s", g.Removed, l.h.Watermark, whatToDoInFront)
		}
		for name := range g.At {
			if last, at := l.h.lastEver(name), g.positionIn(name, l.h.Cabinets[name]); at.isInFront(last) {
				l.addFinding("H1", gateInFront, fmt.Sprintf("%s %s, event %d", g.ID, name, at.Total), raise,
					"the gate is past %d events, up to number %d in drawer %d, but only %d events, up to number %d in drawer %d, were received; %s",
					at.Total, at.Sequence, at.Ordinal, last.Total, last.Sequence, last.Ordinal, whatToDoInFront)
			}
		}
		if g.Open == "" {
			continue
		}
		d := byID[g.Open]
		if d == nil {
			l.addFinding("H6", bundleMissing, g.ID+", bundle "+g.Open, nil, "the gate names an open bundle that does not exist or is not open")
			continue
		}
		delete(byID, g.Open)
		l.open++
		open[d.Cabinet] = d
		count := 0
		for _, s := range d.Ranges {
			count += s.To - s.From
		}
		if count != d.Count || len(d.Ranges) > drawersPerBundle || d.First > d.Last {
			l.addFinding("H6", bundleWrong, "bundle "+d.ID, nil, "the bundle states %d events, numbers %d to %d, but names %d slots in %d drawers", d.Count, d.First, d.Last, count, len(d.Ranges))
		}
	}
	for _, d := range byID {
		l.addFinding("H6", bundleStray, "bundle "+d.ID, nil, "the bundle is open, but no gate names it as open")
	}
	return open, nil
}

// readAgain reads the events again, to check the ids that did not fit into memory in earlier passes.
func (l *recipientCheck) readAgain(ctx context.Context, scans map[cabinetName]*scan) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(drawersPerBundle)
	for _, s := range scans {
		s.idsOnly = true
		g.Go(func() error { return s.readAll(ctx) })
	}
	return g.Wait()
}

func (l *recipientCheck) checkCabinets(ctx context.Context, bundles map[cabinetName]*bundleDoc) (map[cabinetName]*scan, error) {
	scans := make(map[cabinetName]*scan, len(l.h.Cabinets))
	for name, last := range l.h.Cabinets {
		cabinet, err := cabinetOf(l.recipient, name)
		if err != nil {
			return nil, err
		}
		group, err := l.c.r.opts.Groups.GroupOf(cabinet.Origin)
		if err != nil {
			return nil, domain.Errorf(domain.Invalid, "cabinet %s: its origin is not configured: %w", name, err)
		}
		s := &scan{
			l: l, name: name, cabinet: cabinet, last: last, floor: l.h.cabinetFloor(name),
			at: l.gates[group].positionIn(name, last), bundle: bundles[name],
		}
		scans[name] = s
	}
	g, ctx := errgroup.WithContext(ctx) // an error of one scan cancels the other scans
	g.SetLimit(drawersPerBundle)
	for _, s := range scans {
		g.Go(func() error { return s.checkCabinet(ctx) })
	}
	return scans, g.Wait()
}

// checkCatalog compares the catalog entries with the drawers.
func (l *recipientCheck) checkCatalog(ctx context.Context, scans map[cabinetName]*scan) error {
	origins := make(map[domain.Origin]bool)
	for _, s := range scans {
		origins[s.cabinet.Origin] = true
	}
	for origin := range origins {
		key := catalogKey(l.recipient, origin)
		entries, err := client.All[catalogEntry](ctx, l.beginCall().Query(l.c.r.db.catalog, key, "SELECT * FROM c"))
		if err != nil {
			return err
		}
		byDrawer := make(map[string]*catalogEntry, len(entries))
		for _, e := range entries {
			byDrawer[e.ID] = e
		}
		for _, s := range scans {
			if s.cabinet.Origin == origin {
				l.checkEntries(key, s, byDrawer)
			}
		}
		for _, e := range byDrawer {
			if l.isIntended(e.ID) {
				continue
			}
			l.addFinding("H10", entryStale, "entry "+e.ID, removeDocument(l.c.r.db.catalog, key, e.ID, e.ETag),
				"the entry states that number %d waits in drawer %d of %s, but the drawer has no waiting event", e.NextSequence, e.Ordinal, e.ContentType)
		}
	}
	return nil
}

// checkEntries compares the catalog entries of one cabinet with its drawers as read by s.
func (l *recipientCheck) checkEntries(key string, s *scan, byDrawer map[string]*catalogEntry) {
	container := l.c.r.db.catalog
	for _, d := range s.seen {
		if d.next == 0 {
			// No event waits in the drawer, but its entry may remain, because a Dequeue of events in a
			// tail changes no entries. A Peek verifies such an entry, and a sweep deletes it together with
			// the drawer.
			delete(byDrawer, d.id)
			continue
		}
		want := &catalogEntry{
			ID: d.id, PartitionKey: key, ContentType: s.cabinet.ContentType.String(), Ordinal: d.ordinal, NextSequence: d.next,
		}
		e := byDrawer[d.id]
		delete(byDrawer, d.id)
		switch where := "entry " + d.id; {
		case e == nil: // small Saves to a drawer write no entry
		case e.NextSequence < d.next && d.id == s.last.Drawer: // a Dequeue of events in the tail raises no entry
		case e.NextSequence < d.next && s.last.frontBehind(s.at) == d.next: // if the head has a front, a Save does not raise the entry
		case e.NextSequence < d.next:
			l.addFinding("H10", entryLow, where, replaceEntry(container, key, want.replacementFor(e), e.ETag), "the entry states that number %d waits, but the first waiting number is %d", e.NextSequence, d.next)
		case e.NextSequence > d.next || e.Ordinal != d.ordinal || e.ContentType != want.ContentType:
			l.addFinding("H10", entryHigh, where, replaceEntry(container, key, want.replacementFor(e), e.ETag),
				"the entry states that number %d waits in drawer %d of %s, but the first waiting number is %d in drawer %d", e.NextSequence, e.Ordinal, e.ContentType, d.next, d.ordinal)
		}
	}
}

// isIntended reports whether the intent of the Save in flight names a drawer.
func (l *recipientCheck) isIntended(drawer string) bool {
	if l.h.Intent == nil {
		return false
	}
	return slices.ContainsFunc(l.h.Intent.Parts, func(p drawerPart) bool { return p.Drawer == drawer })
}

// findDuplicates compares the suspect ids in full, and reports the ids that exist twice.
func (l *recipientCheck) findDuplicates(ctx context.Context, scans map[cabinetName]*scan) error {
	suspects := l.ids.suspects
	if len(suspects) == 0 {
		return nil
	}
	places := make(map[domain.EventID][]string)
	for _, s := range scans {
		for _, d := range s.seen {
			if err := s.findSuspects(ctx, d, suspects, places); err != nil {
				return err
			}
		}
	}
	for id, at := range places {
		if len(at) > 1 {
			slices.Sort(at)
			l.addFinding("H2", eventTwice, "event "+id.String(), nil, "the event is in %s", strings.Join(at, " and in "))
		}
	}
	return nil
}

func removeDocument(container *azcosmos.ContainerClient, key, id string, etag azcore.ETag) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error { return c.Delete(ctx, container, key, id, etag) }
}

func replaceEntry(container *azcosmos.ContainerClient, key string, e *catalogEntry, etag azcore.ETag) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		_, err := c.Put(ctx, container, key, e.ID, etag, e)
		return err
	}
}

func isStale(err error) bool {
	return errors.Is(err, client.ErrStale) || errors.Is(err, errIntentUnchanged)
}
