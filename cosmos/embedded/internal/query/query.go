package query

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// NoLimit is the limit of a query without TOP or LIMIT.
const NoLimit = -1

// A Query is a parsed query with its parameters. It is immutable.
//
// The state of an evaluation is in Slots: first the values of aliases, group keys and aggregates, then the values of
// paths into the document.
type Query struct {
	selection // the field where contains the conditions that depend on a row of FROM

	// source is the subquery in FROM whose results this query reads in place of documents. It is set if the subquery
	// combines documents.
	source *Query

	written   *selectNode
	star      bool    // true for SELECT * of the document itself
	document  []expr  // conditions that depend only on the document, joined by AND
	orders    []Order // if empty, results are in the order of insertion
	skipped   int     // number of results that OFFSET skips
	maximum   int     // limit of TOP or LIMIT, or NoLimit
	constant  bool    // true if the query has no FROM
	extra     int     // number of slots in front of the slots of paths
	paths     []rawjson.Path
	slotOf    map[string]int // slot of each path, by pathKey
	extractor *rawjson.Extractor
}

// An Order is one path of ORDER BY.
type Order struct {
	Path       rawjson.Path
	Descending bool
	slot       int
}

// An Option changes how Parse reads a query.
type Option func(*compiler)

// WithClock sets the clock that functions such as GetCurrentDateTime use.
func WithClock(now func() time.Time) Option { return func(c *compiler) { c.now = now } }

// WithRandom sets the source of random numbers for RAND.
func WithRandom(random func() float64) Option { return func(c *compiler) { c.random = random } }

// Parse parses a query. params contains the value of each @name, in the form of rawjson.Compact.
func Parse(ctx context.Context, text string, params map[string]Value, options ...Option) (*Query, error) {
	p, err := newParser(text, params)
	if err != nil {
		return nil, err
	}
	n, err := p.parseSelect()
	if err != nil {
		return nil, err
	}
	if err := p.expectEnd(); err != nil {
		return nil, err
	}
	return p.compileQuery(ctx, n, options)
}

// ParseCondition parses the condition of a patch, FROM alias WHERE condition.
func ParseCondition(ctx context.Context, text string, options ...Option) (*Query, error) {
	p, err := newParser(text, nil)
	if err != nil {
		return nil, err
	}
	n := &selectNode{star: true}
	at := p.peekToken()
	if !at.isToken("FROM") {
		return nil, p.expectToken("FROM")
	}
	if err := p.parseFrom(n); err != nil {
		return nil, err
	}
	if t := p.peekToken(); !t.isToken("WHERE") {
		return nil, &Error{t.at, "a patch condition needs WHERE"}
	}
	if err := p.parseWhere(n); err != nil {
		return nil, err
	}
	if err := p.expectEnd(); err != nil {
		return nil, err
	}
	q, err := p.compileQuery(ctx, n, options)
	if err == nil && len(q.sources) > 0 {
		return nil, &Error{n.sources[0].textOffset(), "a patch condition is about the document: FROM wants one name"}
	}
	return q, err
}

// compileQuery compiles the parsed query.
func (p *queryParser) compileQuery(ctx context.Context, n *selectNode, options []Option) (*Query, error) {
	c := &compiler{now: time.Now, random: rand.Float64, extra: p.extra, used: -1, slots: &Slots{ctx: ctx, limits: DefaultLimits, check: checkEvery}}
	for _, option := range options {
		option(c)
	}
	c.start = c.now()
	q := &Query{written: n, maximum: NoLimit, constant: len(n.sources) == 0, extra: c.extra}
	q.distinct = n.distinct
	s := &scope{aliases: map[string]alias{}, container: true}
	for i, from := range n.sources {
		if body, ok := from.from.(subqueryNode); ok && i == 0 && !from.each && body.combinesDocuments() {
			inner := &queryParser{extra: p.extra}
			var err error
			if q.source, err = inner.compileQuery(ctx, body.body, options); err != nil {
				return nil, err
			}
			s.declareAlias(from.alias, alias{document: true})
			continue
		}
		if err := c.compileSource(from, s, &q.selection); err != nil {
			return nil, err
		}
	}
	for _, condition := range conjunctNodes(n.where, nil) {
		c.perRow = false
		e, err := c.compileExpr(condition, s)
		if err != nil {
			return nil, err
		}
		if always, ok := e.(constantExpr); ok && always.value.IsTrue() {
			continue
		}
		if c.perRow {
			q.where = listConjuncts(e, q.where)
		} else {
			q.document = listConjuncts(e, q.document)
		}
	}
	if q.star = n.star && len(q.sources) == 0; !q.star {
		if err := c.compileProjection(n, s, &q.selection); err != nil {
			return nil, err
		}
	}
	if err := c.compileOrders(n, s, q); err != nil {
		return nil, err
	}
	if n.top != nil {
		q.maximum = n.top.n
	}
	if n.limit != nil {
		q.skipped, q.maximum = n.offset.n, n.limit.n
	}
	if err := c.slots.Failure(); err != nil {
		return nil, err
	}
	q.paths, q.slotOf = c.paths, c.found
	q.extractor = rawjson.NewExtractor(c.paths)
	return q, nil
}

const noDocumentPath = "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path."

// compileOrders compiles ORDER BY. Each path must lead into the document, directly or by an alias.
func (c *compiler) compileOrders(n *selectNode, s *scope, q *Query) error {
	rows := *s
	rows.group = nil
	for _, o := range n.orderBy {
		name, path, ok := asPath(o.path)
		if !ok {
			return &Error{o.textOffset(), noDocumentPath}
		}
		e, err := c.resolveName(name, path, &rows)
		if err != nil {
			return err
		}
		path, ok = c.documentPath(e, nil)
		if !ok || len(path) == 0 || q.source != nil {
			return &Error{o.textOffset(), noDocumentPath}
		}
		if q.group != nil { // ignore ORDER BY, because a single result needs no order
			continue
		}
		q.orders = append(q.orders, Order{Path: path, Descending: o.descending, slot: c.pathSlot(path)})
	}
	return nil
}

// Print returns the query in canonical form, with the names of parameters.
func (q *Query) Print() string { return printSelect(q.written) }
