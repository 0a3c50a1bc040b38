package query

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A selection is a compiled SELECT. Of the outermost SELECT, ORDER BY, OFFSET and LIMIT are in Query.
type selection struct {
	sources  []rowSource
	where    []expr // conditions, joined by AND
	distinct bool
	value    expr      // result for a row
	group    *grouping // nil if each row is a separate result

	order  []sortTerm // ORDER BY of a subquery
	offset int        // OFFSET of a subquery
	limit  int        // TOP or LIMIT of a subquery, or NoLimit
}

// A sortTerm is one ORDER BY path of a subquery.
type sortTerm struct {
	key        expr
	descending bool
}

// compileSelect compiles a query or subquery. container tells whether FROM may refer to the container.
func (c *compiler) compileSelect(n *selectNode, outer *scope, container bool) (*selection, error) {
	s := &scope{outer: outer, aliases: map[string]alias{}, container: container}
	sel := &selection{distinct: n.distinct, limit: NoLimit}
	for _, from := range n.sources {
		if err := c.compileSource(from, s, sel); err != nil {
			return nil, err
		}
	}
	for _, condition := range conjunctNodes(n.where, nil) {
		e, err := c.compileExpr(condition, s)
		if err != nil {
			return nil, err
		}
		sel.where = append(sel.where, e)
	}
	if err := c.compileSortTerms(n, s, sel); err != nil {
		return nil, err
	}
	if n.top != nil {
		sel.limit = n.top.n
	}
	if n.limit != nil {
		sel.offset, sel.limit = n.offset.n, n.limit.n
	}
	return sel, c.compileProjection(n, s, sel)
}

// compileSortTerms compiles ORDER BY of a subquery. With an aggregate, it only checks ORDER BY, because there is a
// single result.
func (c *compiler) compileSortTerms(n *selectNode, s *scope, sel *selection) error {
	for _, o := range n.orderBy {
		if _, _, ok := asPath(o.path); !ok {
			return &Error{o.textOffset(), noDocumentPath}
		}
		key, err := c.compileExpr(o.path, s)
		if err != nil {
			return err
		}
		sel.order = append(sel.order, sortTerm{key, o.descending})
	}
	if hasAggregate(n) {
		sel.order = nil
	}
	return nil
}

// compileProjection compiles SELECT and GROUP BY.
func (c *compiler) compileProjection(n *selectNode, s *scope, sel *selection) (err error) {
	if n.groupBy != nil || hasAggregate(n) {
		if sel.group, err = c.compileGrouping(n.groupBy, s); err != nil {
			return err
		}
		s.group = sel.group
	}
	switch {
	case n.star:
		for name := range s.aliases { // SELECT * has exactly one alias
			sel.value, err = c.resolveName(nameNode{n.textPosition, name}, rawjson.Path{}, s)
		}
	case n.value != nil:
		sel.value, err = c.compileExpr(n.value, s)
	default:
		sel.value, err = c.compileColumns(n, s)
	}
	return err
}

func (c *compiler) compileColumns(n *selectNode, s *scope) (expr, error) {
	o := objectExpr{}
	names := n.columnNames()
	taken := map[string]bool{}
	for i, column := range n.columns {
		e, err := c.compileExpr(column.expr, s)
		if err != nil {
			return nil, err
		}
		if taken[names[i]] {
			return nil, &Error{column.textOffset(), fmt.Sprintf("property name %q is selected twice; name one of them with AS", names[i])}
		}
		taken[names[i]] = true
		o.names, o.values = append(o.names, names[i]), append(o.values, e)
	}
	return o, nil
}

// columnNames returns the property names of a result.
func (s *selectNode) columnNames() (names []string) {
	unnamed := 0
	for _, c := range s.columns {
		name := c.name
		if name == "" {
			name = columnName(c.expr)
		}
		if name == "" {
			unnamed++
			name = "$" + strconv.Itoa(unnamed)
		}
		names = append(names, name)
	}
	return names
}

// columnName returns the name of a column without AS: the last property of its path. Other columns are named $1, $2 and
// so on.
func columnName(n exprNode) string {
	if _, _, ok := asPath(n); ok {
		return lastName(n)
	}
	return ""
}

// compileSource compiles one part of FROM. If the part is the document itself, there is nothing to compile.
func (c *compiler) compileSource(n sourceNode, s *scope, sel *selection) error {
	var src rowSource
	first := s.container && len(s.aliases) == 0
	if body, ok := n.from.(subqueryNode); ok {
		inner, err := c.compileSelect(body.body, s, first)
		if err != nil {
			return err
		}
		if first && body.combinesDocuments() {
			return &Error{n.textOffset(), "a subquery over the whole container that combines documents is supported only in the outermost FROM, without IN"}
		}
		src.from = inner
	} else {
		e, err := c.compileCollection(n.from, s, first)
		if err != nil {
			return err
		}
		if p, ok := e.(pathExpr); ok && len(c.paths[p.slot-c.extra]) == 0 && !n.each {
			s.declareAlias(n.alias, alias{document: true})
			return nil
		}
		src.path = e
	}
	src.each, src.slot = n.each, c.takeSlot()
	sel.sources = append(sel.sources, src)
	switch {
	case n.each:
	case src.from == nil:
		c.bindSlot(src.slot, src.path)
	case src.from.group == nil:
		c.bindSlot(src.slot, src.from.value)
	}
	s.declareAlias(n.alias, alias{slot: src.slot})
	return nil
}

// declareAlias adds an alias. For a path that ends in [0] the name is "", to which no expression can refer.
func (s *scope) declareAlias(name string, a alias) { s.aliases[name] = a }

// compileCollection compiles the path of FROM or JOIN. In the outermost FROM, the first name stands for the container.
func (c *compiler) compileCollection(n exprNode, s *scope, first bool) (expr, error) {
	name, path, ok := asPath(n)
	if !ok {
		return nil, &Error{n.textOffset(), "want a path"}
	}
	if first {
		return pathExpr{c.pathSlot(path)}, nil
	}
	perRow := c.perRow // restore perRow afterwards, because only conditions may set it
	e, err := c.resolveName(name, path, s)
	c.perRow = perRow
	return e, err
}

// conjunctNodes appends the terms of an AND to list.
func conjunctNodes(n exprNode, list []exprNode) []exprNode {
	if n == nil {
		return list
	}
	if chain, ok := n.(chainNode); ok && chain.ops[0] == "AND" {
		for _, operand := range chain.operands {
			list = conjunctNodes(operand, list)
		}
		return list
	}
	return append(list, n)
}

// A rowSource assigns the values of one alias.
type rowSource struct {
	slot int
	each bool       // true to iterate over the elements of the value
	path expr       // path of the value; unused if from is set
	from *selection // subquery that computes the value, or nil
}

// bindValues stores each value in its slot and calls visit, until visit returns false.
func (s rowSource) bindValues(slots *Slots, visit func() bool) bool {
	more := true
	one := func(raw []byte) bool {
		if raw == nil {
			return true // there is no row for an undefined value
		}
		if !slots.spendSteps(1) {
			return false
		}
		if !s.each {
			slots.values[s.slot] = raw
			more = visit()
			return more
		}
		if raw[0] == '[' {
			_ = rawjson.EachElement(raw, func(item []byte) bool { // cannot fail, because the value was checked when it was stored
				if !slots.spendRead(len(item)) {
					more = false
					return false
				}
				slots.values[s.slot] = item
				more = visit()
				return more
			})
		}
		return more
	}
	if s.from != nil {
		s.from.eachResult(slots, one)
	} else {
		one(evalRaw(s.path, slots))
	}
	return more
}

// eachRow calls visit for each row that meets the condition, until visit returns false.
func (s *selection) eachRow(slots *Slots, visit func() bool) {
	var from func(i int) bool
	from = func(i int) bool {
		if i < len(s.sources) {
			return s.sources[i].bindValues(slots, func() bool { return from(i + 1) })
		}
		return slots.spendSteps(1) && (!areAllTrue(s.where, slots) || visit())
	}
	from(0)
}

// eachResult calls visit with the JSON of each result, in order, until visit returns false.
func (s *selection) eachResult(slots *Slots, visit func(raw []byte) bool) {
	if s.order != nil {
		s.sortResults(slots, s.applyWindow(visit))
		return
	}
	if s.limit == 0 {
		return
	}
	s.eachUnsorted(slots, s.applyWindow(visit))
}

// applyWindow returns a function that passes those results to visit that TOP, OFFSET and LIMIT select.
func (s *selection) applyWindow(visit func(raw []byte) bool) func(raw []byte) bool {
	if s.offset == 0 && s.limit == NoLimit {
		return visit
	}
	n := 0
	return func(raw []byte) bool {
		n++
		switch {
		case n <= s.offset:
			return true
		case s.limit != NoLimit && n > s.offset+s.limit:
			return false
		}
		return visit(raw) && (s.limit == NoLimit || n < s.offset+s.limit)
	}
}

// sortResults calls visit with each result in the order of ORDER BY. With DISTINCT, it omits repeated results.
func (s *selection) sortResults(slots *Slots, visit func(raw []byte) bool) {
	type sorted struct {
		keys []Value
		raw  []byte
	}
	var rows []sorted
	s.eachRow(slots, func() bool {
		raw := evalRaw(s.value, slots)
		if raw == nil {
			return true
		}
		row := sorted{raw: raw}
		for _, o := range s.order {
			row.keys = append(row.keys, o.key.evalRow(slots).Clone())
		}
		rows = append(rows, row)
		return slots.spendMade(len(raw))
	})
	slices.SortStableFunc(rows, func(a, b sorted) int {
		slots.spendSteps(1)
		for i, o := range s.order {
			if c := Compare(a.keys[i], b.keys[i]); c != 0 && o.descending {
				return -c
			} else if c != 0 {
				return c
			}
		}
		return 0
	})
	seen := newSeenResults(s.distinct)
	for _, row := range rows {
		if seen != nil && !slots.spendCanonical(ParseValue(row.raw)) {
			return
		}
		if seen.addIfNew(row.raw) && !visit(row.raw) {
			return
		}
	}
}

// eachUnsorted is eachResult, but ignores ORDER BY and OFFSET.
func (s *selection) eachUnsorted(slots *Slots, visit func(raw []byte) bool) {
	seen := newSeenResults(s.distinct)
	give := func() bool {
		raw := evalRaw(s.value, slots)
		if seen != nil && !slots.spendCanonical(ParseValue(raw)) {
			return false
		}
		return raw == nil || !seen.addIfNew(raw) || visit(raw)
	}
	if s.group == nil {
		s.eachRow(slots, give)
		return
	}
	groups := s.group.newGroups()
	s.eachRow(slots, func() bool {
		groups.addRow(slots)
		return true
	})
	groups.eachGroup(slots, give)
}
