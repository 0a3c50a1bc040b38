package query

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A CrossPartitionPlan tells a client how to execute a query whose results depend on several physical partitions. The
// client sends Text to each partition and combines the results. The plan follows the format of Cosmos DB's query plans.
type CrossPartitionPlan struct {
	Text       string      // query for each partition; "" means the original text
	Value      bool        // SELECT VALUE
	Distinct   string      // "None"; with DISTINCT "Ordered" if equal results are adjacent, otherwise "Unordered"
	Top        *int        // TOP; excludes Offset and Limit
	Offset     *int        // OFFSET; set together with Limit
	Limit      *int        //
	Orders     []Order     // orders by which the client merges the results
	OrderTexts []string    // expressions of Orders
	GroupTexts []string    // expressions of GROUP BY
	Aggregates []string    // the aggregate of a SELECT VALUE, such as "Count"
	Columns    []SumColumn // columns of a SELECT without VALUE that groups or aggregates
}

// A SumColumn is one column in the results of a query that groups or aggregates.
type SumColumn struct {
	Name      string
	Aggregate string // "" for an expression of GROUP BY keys, whose value is the same in the whole group
}

// orderFilter is the placeholder that clients replace with a condition when they resume a query.
const orderFilter = "{documentdb-formattableorderbyquery-filter}"

// aggregateNames are the names of aggregates in query plans.
var aggregateNames = map[string]string{"COUNT": "Count", "SUM": "Sum", "MIN": "Min", "MAX": "Max", "AVG": "Average"}

// Needs returns the names of the features that a client must support to execute the plan.
func (s CrossPartitionPlan) Needs() []string {
	needs := map[string]bool{
		"OrderBy": len(s.Orders) > 0, "MultipleOrderBy": len(s.Orders) > 1, "Distinct": s.Distinct != "None",
		"Top": s.Top != nil, "OffsetAndLimit": s.Limit != nil, "GroupBy": len(s.GroupTexts) > 0, "Aggregate": len(s.Aggregates) > 0,
	}
	sums := 0
	for _, c := range s.Columns {
		if c.Aggregate != "" {
			sums++
		}
	}
	needs["NonValueAggregate"], needs["MultipleAggregates"] = sums > 0, sums > 1
	maps.DeleteFunc(needs, func(_ string, needed bool) bool { return !needed })
	return slices.Sorted(maps.Keys(needs))
}

// CrossPartition derives the plan of the query. It fails if results of partitions cannot be combined, for example if an
// aggregate is part of an expression. A query with a Source is evaluated in one partition.
func (q *Query) CrossPartition() (CrossPartitionPlan, error) {
	n := *q.written
	s := CrossPartitionPlan{Value: n.value != nil, Distinct: "None", Orders: q.orders}
	if q.Simple() {
		return s, nil
	}
	if q.group != nil {
		n.orderBy = nil // a single result needs no order
		n.nameMembers()
		s.Value = n.value != nil
	}
	switch {
	case n.top != nil:
		s.Top = &q.maximum
	case n.limit != nil:
		s.Offset, s.Limit = &q.skipped, &q.maximum
	}
	for _, o := range n.orderBy {
		s.OrderTexts = append(s.OrderTexts, printNode(o.path))
	}
	if n.distinct {
		s.Distinct = "Unordered"
		if n.isSortedByAll(s.OrderTexts) {
			s.Distinct = "Ordered"
		}
	}
	switch {
	case q.group != nil:
		// Each partition returns partial groups, which the client combines. Therefore OFFSET and LIMIT do not apply to
		// a partition.
		n.distinct, n.top, n.offset, n.limit = false, nil, nil, nil
		if err := n.addGroupKeys(&s); err != nil {
			return s, err
		}
	case len(q.orders) > 0:
		n.addSortKeys()
	}
	if n.limit != nil { // a partition skips nothing, because the results that OFFSET skips may be in a different one
		n.limit = &countNode{n: min(q.skipped+q.maximum, maxCount)}
		n.offset = &countNode{}
	}
	if n.top != nil {
		n.top = &countNode{n: q.maximum}
	}
	s.Text = printSelect(&n)
	return s, nil
}

// nameMembers replaces SELECT VALUE {"name": expr} with SELECT expr AS name. The results are equal, but clients can
// combine them.
func (n *selectNode) nameMembers() {
	o, ok := n.value.(objectNode)
	if !ok || len(o.names) == 0 {
		return
	}
	n.value = nil
	for i, name := range o.names {
		n.columns = append(n.columns, columnNode{textPosition: o.textPosition, expr: o.values[i], name: name})
	}
}

// isSortedByAll reports whether ORDER BY contains all expressions of SELECT, so that equal results are adjacent.
func (n *selectNode) isSortedByAll(orders []string) bool {
	selected := map[string]bool{}
	if n.value != nil {
		selected[printNode(n.value)] = true
	}
	for _, c := range n.columns {
		selected[printNode(c.expr)] = true
	}
	ordered := map[string]bool{}
	for _, text := range orders {
		ordered[text] = true
	}
	return maps.Equal(selected, ordered)
}

// selectedValue returns the results of SELECT as a single expression.
func (n *selectNode) selectedValue() exprNode {
	switch {
	case n.star:
		return nameNode{name: n.sources[0].alias}
	case n.value != nil:
		return n.value
	}
	o := objectNode{}
	for i, name := range n.columnNames() {
		o.names, o.values = append(o.names, name), append(o.values, n.columns[i].expr)
	}
	return o
}

// itemNode returns {"item": e}, where e may be undefined.
func itemNode(e exprNode) exprNode { return objectNode{names: []string{"item"}, values: []exprNode{e}} }

func itemNodes(list []exprNode) exprNode {
	a := arrayNode{}
	for _, e := range list {
		a.items = append(a.items, itemNode(e))
	}
	return a
}

// addSortKeys adds a sort key to each result.
func (n *selectNode) addSortKeys() {
	var keys []exprNode
	for _, o := range n.orderBy {
		keys = append(keys, o.path)
	}
	rest := n.where
	if rest == nil {
		rest = literalNode{value: boolValue(true)}
	}
	if n.value != nil { // exclude undefined values, which are not results
		rest = chainNode{ops: []string{"AND"}, operands: []exprNode{rest, callNode{name: "IS_DEFINED", args: []exprNode{n.value}}}}
	}
	if n.distinct { // the client removes duplicates, because the _rid makes every result distinct
		n.distinct, n.top, n.offset, n.limit = false, nil, nil, nil
	}
	payload := n.selectedValue()
	n.columns = []columnNode{
		{expr: memberNode{base: nameNode{name: n.joinDocument()}, name: "_rid"}, name: orderedNames[0]},
		{expr: itemNodes(keys), name: orderedNames[1]},
		{expr: payload, name: orderedNames[2]},
	}
	n.star, n.value = false, nil
	n.where = chainNode{ops: []string{"AND"}, operands: []exprNode{nameNode{name: orderFilter}, rest}}
}

// joinDocument returns an alias for the document. If FROM reads a path or a subquery, it adds an alias and turns FROM
// into a JOIN.
func (n *selectNode) joinDocument() string {
	first := n.sources[0]
	if _, isName := first.from.(nameNode); isName && !first.each {
		return first.alias
	}
	name := "root"
	for i, text := 1, printSelect(n); strings.Contains(text, name); i++ {
		name = "root" + strconv.Itoa(i)
	}
	first.from = withContainer(first.from, name)
	n.sources = append([]sourceNode{{alias: name, from: nameNode{name: name}}, first}, n.sources[1:]...)
	return name
}

// withContainer returns a path or subquery of FROM in which name stands for the container.
func withContainer(from exprNode, name string) exprNode {
	switch n := from.(type) {
	case nameNode:
		n.name = name
		return n
	case memberNode:
		n.base = withContainer(n.base, name)
		return n
	case indexNode:
		n.base = withContainer(n.base, name)
		return n
	case subqueryNode:
		body := *n.body
		body.sources = slices.Clone(body.sources)
		body.sources[0].from = withContainer(body.sources[0].from, name)
		n.body = &body
		return n
	}
	return from
}

// orderedNames are the properties of the results of addSortKeys.
var orderedNames = []string{"_rid", "orderByItems", "payload"}

// SameOrder returns the text of a query that addSortKeys has built, but without the condition for resuming. For other
// queries it returns "". A continuation token is valid for all queries with the same SameOrder.
func (q *Query) SameOrder() string {
	n := *q.written
	where, ok := n.where.(chainNode)
	if !ok || where.ops[0] != "AND" || len(n.orderBy) == 0 || !q.Streams() || !slices.Equal(n.columnNames(), orderedNames) {
		return ""
	}
	n.where = where.operands[len(where.operands)-1]
	p := printer{values: true}
	p.writeSelect(&n)
	return p.String()
}

// addGroupKeys adds the group key to each result, and replaces aggregates with partial aggregates that clients can
// combine.
func (n *selectNode) addGroupKeys(s *CrossPartitionPlan) error {
	for _, key := range n.groupBy {
		s.GroupTexts = append(s.GroupTexts, printNode(key))
	}
	var payload exprNode
	if n.value != nil {
		part, function, err := partialAggregate(n.value)
		if err != nil {
			return err
		}
		payload = part
		if function != "" {
			s.Aggregates = []string{function}
			payload = arrayNode{items: []exprNode{part}}
		}
	} else {
		o := objectNode{names: n.columnNames()}
		for i, name := range o.names {
			part, function, err := partialAggregate(n.columns[i].expr)
			if err != nil {
				return err
			}
			s.Columns = append(s.Columns, SumColumn{name, function})
			o.values = append(o.values, part)
		}
		payload = o
	}
	if n.groupBy == nil && n.value != nil {
		n.value = payload
		return nil
	}
	n.value, n.columns = nil, nil
	if n.groupBy != nil {
		n.columns = append(n.columns, columnNode{expr: itemNodes(n.groupBy), name: "groupByItems"})
	}
	n.columns = append(n.columns, columnNode{expr: payload, name: "payload"})
	return nil
}

// partialAggregate returns the expression that each partition computes for a column of a group. function is the
// aggregate that combines the partial results, or "".
func partialAggregate(e exprNode) (part exprNode, function string, err error) {
	c, ok := e.(callNode)
	if !ok || !isAggregate(c.name) {
		walkNode(e, func(inner exprNode) bool {
			if c, ok := inner.(callNode); ok && isAggregate(c.name) {
				err = &Error{c.textOffset(), "an expression of aggregates is supported only within one partition key"}
			}
			return err == nil
		})
		return e, "", err
	}
	of := func(name string) exprNode { return callNode{textPosition: c.textPosition, name: name, args: c.args} }
	switch c.name {
	case "AVG":
		part = itemNode(objectNode{names: []string{"sum", "count"}, values: []exprNode{of("SUM"), of("COUNT")}})
	case "MIN", "MAX":
		name := map[string]string{"MIN": "min", "MAX": "max"}[c.name]
		part = objectNode{names: []string{"item", "item2"}, values: []exprNode{
			e, objectNode{names: []string{name, "count"}, values: []exprNode{e, of("COUNT")}},
		}}
	default:
		part = itemNode(e)
	}
	return part, aggregateNames[c.name], nil
}
