package engine

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// maxPage is the maximum number of bytes of documents on a result page.
const maxPage = 4 << 20

// A QueryRequest requests one result page.
type QueryRequest struct {
	Query        *query.Query
	Text         string // text of the query; a continuation token is valid only for the text that created it
	Partition    Partition
	Scoped       bool      // read only Partition; otherwise the condition may restrict the partitions
	Prefix       Partition // read only partitions with this prefix of a hierarchical key
	Range        *Range    // read only this physical partition; nil reads all
	AllowCross   bool      // allow the query to read several partitions
	MaxItems     int       // maximum number of results; -1 for no limit
	Continuation string
	Consistency  Consistency
}

// A Page is one result page.
type Page struct {
	JSON         []byte // the complete body of the response
	Count        int
	Continuation string // "" on the last page
	Charge       Charge
	Session      uint64
	Scanned      int // documents read
	Loaded       int // number of documents that were loaded because no index answers the condition
}

// gatewayRefusal is the error text from which clients know that a query needs a plan.
const gatewayRefusal = "BadRequest: the provided cross partition query can not be directly served by the gateway. " +
	"Only filters and projections are; scope the query to one partition key, or use a client that follows query plans."

// NeedsPlan is the substatus of a query for which the client needs a query plan.
const NeedsPlan = 1004

// ParseQuery parses a query. Functions such as GetCurrentDateTime use the clock of the engine.
func (e *Engine) ParseQuery(ctx context.Context, text string, params map[string]query.Value) (*query.Query, error) {
	return query.Parse(ctx, text, params, query.WithClock(e.clock))
}

// Query reads one result page. It fails if ctx ends. If a query over several partitions fails with a DamageError, the
// continuation of the returned Page starts after the damaged document.
//
// A query over the whole container is evaluated in the first physical partition. In the remaining ones, its Source has
// no results, so that a client can combine the results of all physical partitions.
func (e *Engine) Query(ctx context.Context, c *Container, q QueryRequest) (Page, error) {
	if err := c.policy.checkOrder(q.Query.Base().Orders()); err != nil {
		return Page{}, err
	}
	if err := c.Scope(&q); err != nil {
		return Page{}, err
	}
	alone := q.Scoped || q.Range != nil // the query reads a single logical or physical partition
	if !alone && !q.AllowCross {
		return Page{}, badRequest("the query spans partitions, but x-ms-documentdb-query-enablecrosspartition is not set")
	}
	if !alone && !q.Query.Simple() {
		return Page{}, &Error{Status: http.StatusBadRequest, SubStatus: NeedsPlan, Message: gatewayRefusal}
	}
	var elsewhere bool
	if q.Query.Source() != nil && q.Range != nil && !q.Scoped {
		elsewhere, q.Range = !q.Range.hasKey(c.firstKey(q.Prefix)), nil
	}
	var derived []*query.Query
	for ; q.Query.Source() != nil; q.Query = q.Query.Source() {
		derived = append(derived, q.Query)
	}
	r := &pageBuilder{e: e, derived: derived, isElsewhere: elsewhere, c: c, q: q, now: e.expiryTime(c), plan: c.policy.planQuery(q.Query, e.orderOnlyIndexed), slots: q.Query.NewSlots(ctx, e.limits), ctx: ctx}
	if r.ids = findNamedIDs(q.Query); r.ids != nil {
		r.found = map[Partition][]uint64{}
	} else if r.idRange = findIDRange(r.plan); r.idRange != nil {
		r.walks = map[Partition]*rangeWalk{}
	}
	if !q.Scoped {
		r.partitions = c.findNamedPartitions(r.plan)
	}
	if q.Continuation != "" {
		if err := r.at.parseToken(q); err != nil {
			return Page{}, err
		}
		r.resumed = true
	}
	err := e.viewState(q.Consistency, r.buildPage)
	if err == nil {
		err = cmp.Or(r.broken, r.slots.Failure())
	}
	return r.page, err
}

// A pageBuilder builds one result page.
type pageBuilder struct {
	e       *Engine
	c       *Container
	q       QueryRequest
	plan    query.Plan
	at      pagePosition // position at which the previous page ended
	resumed bool

	derived     []*query.Query // queries over the results of q.Query, outermost first
	isElsewhere bool           // another physical partition evaluates the source of derived

	ids   []string               // ids that the condition allows; nil allows all
	found map[Partition][]uint64 // sequence numbers of the documents that have one of ids, in the order of insertion

	lookedUp int // number of ids looked up before the first result

	partitions []Partition              // partitions that the condition allows; nil allows all
	idRange    *idRange                 // range of ids that the condition allows; nil allows all
	walks      map[Partition]*rangeWalk // the walk through idRange in each partition

	ctx    context.Context //nolint:containedctx // context of the request
	reader disk.Reader
	now    time.Time
	slots  *query.Slots
	page   Page

	skip    int    // number of JOIN results that OFFSET must still skip
	partial uint64 // sequence number of a document of which only some results fit on the page
	row     int    // number of results of the document partial on the page

	broken   error  // error for an unreadable document, which ends the query
	brokenAt uint64 // sequence number of a damaged document, or 0
}

func (r *pageBuilder) buildPage(reader disk.Reader) error {
	r.reader = reader
	r.page = Page{Session: decodeNumber(reader.Get(counterKey)), Charge: perQueryPage + perPredicate*Charge(r.plan.Predicates)}
	r.page.JSON = append(r.page.JSON, `{"_rid":"`...)
	r.page.JSON = append(r.page.JSON, r.c.RID...)
	r.page.JSON = append(r.page.JSON, `","Documents":[`...)
	if r.e.strictIndex && r.q.Scoped && !r.c.isKeyIndexed() {
		r.chargeScan()
	}
	switch {
	case r.q.Scoped && r.q.Range != nil && !r.q.Range.hasKey(r.c.effectiveKey(r.q.Partition)):
		// the partition is outside the requested range, so there are no results
	case len(r.derived) > 0 || r.q.Query.Constant() || !r.q.Query.Streams() && !r.q.Query.Local():
		r.fillCollected()
	case len(r.q.Query.Orders()) > 0 && r.q.Query.Streams():
		if r.isServedByID() {
			r.fillOrderedByID()
		} else {
			r.fillOrdered()
		}
	case !r.q.Scoped:
		r.fillAcrossPartitions()
	case !r.q.Query.Streams():
		r.fillJoined()
	default:
		r.fillInserted()
	}
	r.page.JSON = append(r.page.JSON, `],"_count":`...)
	r.page.JSON = strconv.AppendInt(r.page.JSON, int64(r.page.Count), 10)
	r.page.JSON = append(r.page.JSON, '}')
	return nil
}

// scanPartition visits the documents of a partition in the order of insertion, starting after
// the sequence number last.
func (r *pageBuilder) scanPartition(pk Partition, last uint64, visit func(seq uint64, s storedDocument, doc []byte) bool) {
	switch {
	case r.ids != nil:
		r.scanByID(pk, last, visit)
	case r.idRange != nil:
		r.scanRange(pk, last, visit)
	default:
		r.scanDocuments(pk, last, visit)
	}
}

// scanDocuments is scanPartition, but never uses the id index.
func (r *pageBuilder) scanDocuments(pk Partition, last uint64, visit func(seq uint64, s storedDocument, doc []byte) bool) {
	prefix := partitionPrefix('D', r.c.number, pk)
	from := documentKey(r.c.number, pk, last+1)
	r.reader.Scan(from, endOfPrefix(prefix), func(key, value []byte) bool {
		s := readStored(key, value)
		r.page.Scanned++
		seq := decodeNumber(key[len(key)-8:])
		doc := r.readJSON(seq, s)
		return r.broken == nil && visit(seq, s, doc)
	})
}

// scanAll visits all documents that the query reads, one partition after the other.
func (r *pageBuilder) scanAll(visit func(seq uint64, s storedDocument, doc []byte) bool) {
	if r.q.Scoped {
		r.scanPartition(r.q.Partition, 0, visit)
		return
	}
	more := true
	lanes := r.findScans(0)
	slices.SortFunc(lanes, func(a, b partitionScan) int { return cmp.Compare(a.first, b.first) })
	for _, l := range lanes {
		r.scanPartition(l.pk, 0, func(seq uint64, s storedDocument, doc []byte) bool {
			more = visit(seq, s, doc)
			return more
		})
		if !more || r.broken != nil {
			return
		}
	}
}

// readJSON returns the document, or nil if it cannot be read or the page must end.
func (r *pageBuilder) readJSON(seq uint64, s storedDocument) []byte {
	if err := cmp.Or(r.broken, r.ctx.Err(), r.slots.Failure()); err != nil {
		r.broken = err
		return nil
	}
	doc, err := s.readJSON(r.reader, r.c)
	if err != nil {
		r.broken, r.brokenAt = err, seq
	}
	return doc
}

// testCondition extracts the values that the query needs from doc, and tests the condition. If an index does not answer
// the whole condition, it counts the document as loaded.
func (r *pageBuilder) testCondition(s storedDocument, doc []byte) bool {
	if r.c.hasExpired(s, r.now) {
		return false
	}
	r.q.Query.Extract(doc, r.slots)
	if !r.plan.Loads(r.slots) {
		return false
	}
	if !r.plan.IndexOnly() {
		r.countLoaded(s)
	}
	return r.plan.Keeps(r.slots) && r.q.Query.HasResult(r.slots)
}

func (r *pageBuilder) countLoaded(s storedDocument) {
	r.page.Loaded++
	r.page.Charge += r.e.loadCharge(s.size)
}

// remainingResults returns how many more results the query may return, or -1 if there is no limit.
func (r *pageBuilder) remainingResults() int {
	if limit := r.q.Query.Limit(); limit != query.NoLimit {
		return limit - r.at.given - r.page.Count
	}
	return -1
}

func (r *pageBuilder) isPageFull() bool { return r.q.MaxItems >= 0 && r.page.Count >= r.q.MaxItems }

// addDocument adds the query's projection of doc to the page. If there is no room, it adds nothing and returns false.
func (r *pageBuilder) addDocument(s storedDocument, doc []byte) bool {
	if r.isPageFull() {
		return false
	}
	mark, page := len(r.page.JSON), r.page.JSON
	if r.page.Count > 0 {
		page = append(page, ',')
	}
	if need := len(page) + len(doc); need > cap(page) {
		// grow in larger steps than append does, because pages can reach 4 MB
		page = slices.Grow(page, max(need, min(4*need, maxPage+16<<10))-len(page))
	}
	page = r.q.Query.Project(page, doc, r.slots)
	if r.page.Count > 0 && len(page) > maxPage {
		r.page.JSON = page[:mark]
		return false
	}
	r.page.JSON = page
	r.page.Count++
	if r.plan.IndexOnly() {
		r.countLoaded(s)
	}
	return true
}

// fillInserted adds the documents of one partition in the order of insertion.
func (r *pageBuilder) fillInserted() {
	skip := r.q.Query.Offset()
	if r.resumed {
		skip = 0 // the first page has already skipped the offset
	}
	last := r.at.seq
	scanned := last // sequence number of the last document read
	r.scanPartition(r.q.Partition, last, func(seq uint64, s storedDocument, doc []byte) bool {
		if r.remainingResults() == 0 {
			return false
		}
		if r.endPage(scanned, skip) {
			return false
		}
		scanned = seq
		before := r.page
		if !r.testCondition(s, doc) {
			return true
		}
		if skip > 0 {
			skip--
			last = seq
			return true
		}
		if !r.addDocument(s, doc) {
			// This document only tells that another page follows. It is not charged here, because the next page reads
			// it again.
			r.page.Charge, r.page.Loaded = before.Charge, before.Loaded
			r.continueAfter(pagePosition{seq: last})
			return false
		}
		last = seq
		return true
	})
}

// endPage ends a page at its work limit. The next page starts after the document last. If OFFSET must still skip
// results, the query fails, because continuation tokens do not contain this number.
func (r *pageBuilder) endPage(last uint64, skip int) bool {
	if !r.slots.Exhausted() {
		return false
	}
	if skip > 0 {
		r.slots.RefuseIfExhausted()
	} else {
		r.continueAfter(pagePosition{seq: last})
	}
	return true
}

func (r *pageBuilder) continueAfter(p pagePosition) {
	p.given = r.at.given + r.page.Count
	p.partial, p.row = r.partial, r.row
	r.page.Continuation = p.encodeToken(r.q)
}
