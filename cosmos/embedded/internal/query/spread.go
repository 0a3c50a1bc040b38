package query

import (
	"maps"
	"slices"
)

// A Spread is how a client answers a query whose results depend on documents
// of several physical partitions: it sends Text to each of them and puts the
// results together. Names and forms are those that the clients of Cosmos DB
// know from query plans.
type Spread struct {
	Text       string      // the query for one partition; "": as it was written
	Value      bool        // SELECT VALUE
	Distinct   string      // "None", "Ordered" if equal results come together, else "Unordered"
	Top        *int        // with no Offset and Limit
	Offset     *int        // with Limit
	Limit      *int        //
	Orders     []Order     // the client merges what is sorted …
	OrderTexts []string    // … by these expressions
	GroupTexts []string    // of GROUP BY
	Aggregates []string    // of SELECT VALUE: one, "Count" for example
	Columns    []SumColumn // of SELECT without VALUE, if it groups or aggregates
}

// A SumColumn is one property of the results of a query that groups.
type SumColumn struct {
	Name      string
	Aggregate string // "" for an expression of keys, the same in the whole group
}

// orderFilter is where clients put the condition by which they resume.
const orderFilter = "{documentdb-formattableorderbyquery-filter}"

// aggregateNames are the names of aggregates in query plans.
var aggregateNames = map[string]string{"COUNT": "Count", "SUM": "Sum", "MIN": "Min", "MAX": "Max", "AVG": "Average"}

// Needs names the features that a client must have to follow the spread.
func (s Spread) Needs() []string {
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

// Spread takes the query apart. It fails if the results of partitions cannot
// be put together: where an expression is made of aggregates.
func (q *Query) Spread() (Spread, error) {
	n := *q.written
	s := Spread{Value: n.value != nil, Distinct: "None", Orders: q.orders}
	if q.Simple() {
		return s, nil
	}
	switch {
	case n.top != nil:
		s.Top = &q.limit
	case n.limit != nil:
		s.Offset, s.Limit = &q.offset, &q.limit
	}
	for _, o := range n.orderBy {
		s.OrderTexts = append(s.OrderTexts, printNode(o.path))
	}
	if n.distinct {
		s.Distinct = "Unordered"
		if n.sortsByAll(s.OrderTexts) {
			s.Distinct = "Ordered"
		}
	}
	switch {
	case q.group != nil:
		// Parts of groups are neither results nor in the window yet.
		n.distinct, n.top, n.offset, n.limit = false, nil, nil, nil
		if err := n.spreadGroups(&s); err != nil {
			return s, err
		}
	case len(q.orders) > 0:
		n.spreadOrder()
	}
	if n.limit != nil { // what one partition leaves out may be wanted of another
		n.limit = &countNode{n: q.offset + q.limit}
		n.offset = &countNode{}
	}
	if n.top != nil {
		n.top = &countNode{n: q.limit}
	}
	s.Text = printSelect(&n)
	return s, nil
}

// sortsByAll reports whether SELECT and ORDER BY name the same, so that equal
// results follow each other.
func (n *selectNode) sortsByAll(orders []string) bool {
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

// selectedValue is what SELECT selects, as one expression.
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

// itemNode is {"item": e}, in which e may be undefined.
func itemNode(e exprNode) exprNode { return objectNode{names: []string{"item"}, values: []exprNode{e}} }

func itemNodes(list []exprNode) exprNode {
	a := arrayNode{}
	for _, e := range list {
		a.items = append(a.items, itemNode(e))
	}
	return a
}

// spreadOrder makes each result carry what it is sorted by.
func (n *selectNode) spreadOrder() {
	var keys []exprNode
	for _, o := range n.orderBy {
		keys = append(keys, o.path)
	}
	rest := n.where
	if rest == nil {
		rest = literalNode{value: boolValue(true)}
	}
	if n.value != nil { // undefined is no result
		rest = chainNode{ops: []string{"AND"}, operands: []exprNode{rest, callNode{name: "IS_DEFINED", args: []exprNode{n.value}}}}
	}
	if n.distinct { // results that differ in _rid are not distinct any more
		n.distinct, n.top, n.offset, n.limit = false, nil, nil, nil
	}
	n.columns = []columnNode{
		{expr: memberNode{base: nameNode{name: n.sources[0].alias}, name: "_rid"}, name: orderedNames[0]},
		{expr: itemNodes(keys), name: orderedNames[1]},
		{expr: n.selectedValue(), name: orderedNames[2]},
	}
	n.star, n.value = false, nil
	n.where = chainNode{ops: []string{"AND"}, operands: []exprNode{nameNode{name: orderFilter}, rest}}
}

// orderedNames are the properties of what spreadOrder makes.
var orderedNames = []string{"_rid", "orderByItems", "payload"}

// SameOrder is the text of a query that spreadOrder made, without the condition
// by which a client resumes: a position in the results of such a query is one
// in those of all that differ in that condition only. It is "" for any other.
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

// spreadGroups makes each result carry its key, and aggregates in a form that
// can be added up.
func (n *selectNode) spreadGroups(s *Spread) error {
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

// partialAggregate is what one partition knows about an expression of a group, and the
// aggregate, if any, that puts what several know together.
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
