package cosmos

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// The filters of a cabinet are in its partition, beside its drawers. Each drawer has a filter (level 0),
// which is replaced from time to time while the drawer fills, and once when it is sealed. When four
// consecutive drawers are sealed, their filters are merged into one filter of level 1. Four filters of
// level 1 are merged into one of level 2, and so on. So the drawers up to any ordinal have at most three
// filters at each level: 21 for 10,000 drawers, or 10^8 events. The head and the hashes determine the ids
// of the filter documents, so one query returns all filters that a node needs for a Save.
//
// What a reader may trust: the filter of a drawer holds every event in the slots below its count, and all
// events of the drawer if it is sealed. A merged filter exists only if all drawers of its block are
// sealed. It holds every event of the drawers that were retained when it was merged. A filter never
// answers "no" for an event that it must hold. Events that are added later, or were never committed, cause
// false positives, and the pages decide.
//
// A filter that is missing, damaged or short is not an error. Instead of a merged filter, the node reads
// the filters of its children; instead of the filter of a drawer, it reads the pages after the filter's
// count. The node then writes the missing filters.
//
// Writing filters costs 0.02 RU for each event up to a million events, and 0.003 RU more for each further
// level.

// A blockFilterDoc is a stored fingerprintSet.
type blockFilterDoc struct {
	ID           string      `json:"id"`
	PartitionKey string      `json:"partitionKey"`     // the key of the cabinet
	Until        int         `json:"until"`            // ordinal after the last drawer of the block; a sweep deletes the filter when the floor reaches it
	Drawer       string      `json:"drawer,omitempty"` // id of the drawer, at level 0 only
	Count        int         `json:"count,omitempty"`  // number of covered slots of the drawer, at level 0 only
	Sealed       bool        `json:"sealed,omitempty"` // the filter covers all events of the drawer, at level 0 only
	Fingerprints packed      `json:"fingerprints"`     // see fingerprintSet.encode
	ETag         azcore.ETag `json:"_etag,omitempty"`
	client.Document
}

// A drawerFilter is the filter of the first count slots of a drawer.
type drawerFilter struct {
	drawer  string
	ordinal int
	count   int
	sealed  bool // the filter covers all events of the drawer
	set     *fingerprintSet
}

// maxFilterBytes limits the filter of a drawer, so that the document, in base64, is smaller than 2 MB. A
// drawer with more than 300,000 events has no filter; its pages are read instead.
const maxFilterBytes = 1_300_000

// filtersPerQuery is the number of filters that are read in one request: 3 MB when they are full.
const filtersPerQuery = 100

// A loadedFilter is a stored filter: its document, and the set decoded from it.
type loadedFilter struct {
	doc *blockFilterDoc
	set *fingerprintSet
}

// readBlockFilters returns the stored filters of segments, by segment. A damaged filter counts as
// missing.
func (c *call) readBlockFilters(ctx context.Context, cabinet domain.CabinetKey, segments []blockSegment) (map[blockSegment]*loadedFilter, error) {
	found := make(map[blockSegment]*loadedFilter, len(segments))
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(drawersPerBundle)
	for some := range slices.Chunk(segments, filtersPerQuery) {
		g.Go(func() error {
			docs, err := c.readFilterDocs(ctx, cabinetKey(cabinet), some)
			mu.Lock()
			defer mu.Unlock()
			for s, doc := range docs {
				if set, err := decodeFingerprints(s, doc.Fingerprints); err == nil {
					found[s] = &loadedFilter{doc, set}
				}
			}
			return err
		})
	}
	return found, g.Wait()
}

// readFilterDocs reads the filters of segments, in one request.
func (c *call) readFilterDocs(ctx context.Context, key string, segments []blockSegment) (map[blockSegment]*blockFilterDoc, error) {
	if len(segments) == 1 { // a point read costs less than a query
		s, doc := segments[0], new(blockFilterDoc)
		_, err := c.Read(ctx, c.r.db.cabinets, key, s.documentID(), doc)
		switch {
		case client.IsNotFound(err):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return map[blockSegment]*blockFilterDoc{s: doc}, nil
	}
	byID := make(map[string]blockSegment, len(segments))
	names := make([]string, len(segments))
	for i, s := range segments {
		byID[s.documentID()], names[i] = s, "'"+s.documentID()+"'" // these ids contain no quotes
	}
	all, err := client.All[blockFilterDoc](ctx, c.Query(c.r.db.cabinets, key, "SELECT * FROM c WHERE c.id IN ("+strings.Join(names, ", ")+")"))
	if err != nil {
		return nil, err
	}
	docs := make(map[blockSegment]*blockFilterDoc, len(all))
	for _, doc := range all {
		docs[byID[doc.ID]] = doc
	}
	return docs, nil
}

// A storedFilter remembers the etag and the extent of a drawer's stored filter, so that this process can
// replace the filter without reading it.
type storedFilter struct {
	mu     sync.Mutex
	etag   azcore.ETag // empty if unknown
	count  int
	sealed bool
}

// writeDrawerFilter stores the filter of a drawer, unless the stored filter already covers these events.
func (c *call) writeDrawerFilter(ctx context.Context, cabinet domain.CabinetKey, f *drawerFilter, known *storedFilter) error {
	known.mu.Lock()
	defer known.mu.Unlock()
	key, id := cabinetKey(cabinet), drawerSegment(f.ordinal).documentID()
	doc := &blockFilterDoc{
		ID: id, PartitionKey: key, Until: f.ordinal + 1,
		Drawer: f.drawer, Count: f.count, Sealed: f.sealed, Fingerprints: f.set.encode(),
	}
	if len(doc.Fingerprints) > maxFilterBytes {
		return nil
	}
	for {
		if known.hasEventsOf(f) {
			return nil // a later hint of this process, or another node, has replaced the filter
		}
		// A crash before this write leaves a filter that covers fewer slots. A node that uses the filter
		// reads the pages after these slots.
		etag, err := c.Put(ctx, c.r.db.cabinets, key, id, known.etag, doc)
		if !client.IsRefused(err) {
			if err == nil {
				known.etag, known.count, known.sealed = etag, f.count, f.sealed
			}
			return err
		}
		var stored blockFilterDoc
		etag, err = c.Read(ctx, c.r.db.cabinets, key, id, &stored)
		if err != nil && !client.IsNotFound(err) {
			return err
		}
		known.etag, known.count, known.sealed = etag, 0, false
		if _, damage := decodeFingerprints(drawerSegment(f.ordinal), stored.Fingerprints); err == nil && damage == nil && stored.Drawer == f.drawer {
			known.count, known.sealed = stored.Count, stored.Sealed
		}
		if !c.Pause(ctx, 0) {
			return client.ErrStale
		}
		doc.Document = stored.Document
	}
}

// hasEventsOf reports whether the stored filter holds all events of f.
func (s *storedFilter) hasEventsOf(f *drawerFilter) bool {
	return s.sealed || s.count >= f.count && !f.sealed
}

// mergeSegment merges the filters of the child blocks of b with segment number child, and stores the
// segments of b that they cover. Drawers with an ordinal below floor have been removed. mergeSegment
// returns false if the filter of a child is missing: a filter merged without it would answer "no" for
// events of the child.
func (c *call) mergeSegment(ctx context.Context, cabinet domain.CabinetKey, b block, child, floor int) (bool, error) {
	var wanted []blockSegment
	for i := range fanOut {
		if s := (blockSegment{b.child(i), child}); s.endOrdinal() > floor {
			wanted = append(wanted, s)
		}
	}
	found, err := c.readBlockFilters(ctx, cabinet, wanted)
	if err != nil {
		return false, err
	}
	var children [fanOut]*fingerprintSet
	for _, s := range wanted {
		f := found[s]
		if f == nil || s.level == 0 && !f.doc.Sealed {
			return false, nil
		}
		children[s.number%fanOut] = f.set
	}
	return true, c.writeMerged(ctx, cabinet, mergeSets(b, &children))
}

// writeMerged stores sets that mergeSets returned.
func (c *call) writeMerged(ctx context.Context, cabinet domain.CabinetKey, sets []*fingerprintSet) error {
	key := cabinetKey(cabinet)
	// A crash before this write leaves the filters of the children, which are used instead. The next
	// node that needs the merged filter writes it.
	_, err := c.Batch(ctx, c.r.db.cabinets, key, false, func(batch *azcosmos.TransactionalBatch) {
		for _, set := range sets {
			batch.CreateItem(client.Encode(&blockFilterDoc{
				ID: set.documentID(), PartitionKey: key, Until: set.endOrdinal(), Fingerprints: set.encode(),
			}), nil)
		}
	})
	if client.IsRefused(err) {
		return nil // the filters exist: every writer writes the same filters, in one batch
	}
	return err
}
