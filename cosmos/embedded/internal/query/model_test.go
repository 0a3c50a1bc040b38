package query

import (
	"encoding/json"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// The model is a second, simple evaluator. Its values are those of encoding/json, and missingValue stands for
// undefined. An expression is a text and a Go function that evaluates it.
type missingValue struct{}

type modelEnv map[string]any

type modelExpr struct {
	text string
	mean func(modelEnv) any
}

func isMissing(v any) bool { return v == any(missingValue{}) }

// getProperty returns a property of a value.
func getProperty(v any, name string) any {
	if o, ok := v.(map[string]any); ok {
		if found, ok := o[name]; ok {
			return found
		}
	}
	return missingValue{}
}

// typeRank returns the rank of a value's type in ORDER BY.
func typeRank(v any) int {
	switch v.(type) {
	case missingValue:
		return 0
	case nil:
		return 1
	case bool:
		return 2
	case float64:
		return 3
	case string:
		return 4
	case []any:
		return 5
	}
	return 6
}

// compareModel compares any two values in the order of ORDER BY.
func compareModel(a, b any) int {
	if typeRank(a) != typeRank(b) {
		return typeRank(a) - typeRank(b)
	}
	less := false
	switch a := a.(type) {
	case bool:
		less = !a && b.(bool)
	case float64:
		less = a < b.(float64)
	case string:
		less = a < b.(string)
	default:
		return 0
	}
	switch {
	case reflect.DeepEqual(a, b):
		return 0
	case less:
		return -1
	}
	return 1
}

func modelCompare(op string, a, b any) any {
	if isMissing(a) || isMissing(b) {
		return missingValue{}
	}
	switch op {
	case "=":
		return reflect.DeepEqual(a, b)
	case "!=":
		return !reflect.DeepEqual(a, b)
	}
	if typeRank(a) != typeRank(b) || typeRank(a) > 4 {
		return missingValue{}
	}
	c := compareModel(a, b)
	return map[string]bool{"<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[op]
}

// modelLogic computes AND and OR in three-valued logic.
func modelLogic(op string, a, b any) any {
	decides := op == "OR"
	if a == any(decides) || b == any(decides) {
		return decides
	}
	if a == any(!decides) && b == any(!decides) {
		return !decides
	}
	return missingValue{}
}

func modelArithmetic(op string, a, b any) any {
	if s, ok := a.(string); ok && op == "||" {
		if t, ok := b.(string); ok {
			return s + t
		}
	}
	x, ok := a.(float64)
	y, also := b.(float64)
	if !ok || !also || op == "||" {
		return missingValue{}
	}
	result := map[string]float64{"+": x + y, "-": x - y, "*": x * y, "/": x / y, "%": math.Mod(x, y)}[op]
	if math.IsNaN(result) || math.IsInf(result, 0) {
		return missingValue{}
	}
	return result
}

// modelLike implements LIKE, but only with % and _.
func modelLike(v any, pattern string) any {
	s, ok := v.(string)
	if !ok {
		return missingValue{}
	}
	re := regexp.QuoteMeta(pattern)
	re = strings.NewReplacer("%", ".*", "_", ".").Replace(re)
	return regexp.MustCompile("(?s)^" + re + "$").MatchString(s)
}

// A modelQuery contains the clauses of a SELECT.
type modelQuery struct {
	distinct, star, value bool
	columns               []modelExpr // named k0, k1 and so on, unless value is set
	join                  bool        // true for JOIN t IN c.l
	where                 *modelExpr
	orders                []modelOrder
	group                 []modelExpr // GROUP BY expressions, which are the first columns
	sums                  []modelSum  // aggregates, which are the remaining columns
	top, offset           int         // -1: none
}

type modelOrder struct {
	name       string // of c.name
	descending bool
}

type modelSum struct {
	function string
	arg      modelExpr
}

type modelRow struct {
	env    modelEnv
	result any
}

// runModel returns all results of the query.
func (q modelQuery) runModel(docs []any) []any {
	var rows []modelRow
	for _, doc := range docs {
		in := []modelEnv{{"c": doc}}
		if q.join {
			in = nil
			items, _ := getProperty(doc, "l").([]any)
			for _, item := range items {
				in = append(in, modelEnv{"c": doc, "t": item})
			}
		}
		for _, e := range in {
			if q.where == nil || q.where.mean(e) == any(true) {
				rows = append(rows, modelRow{env: e})
			}
		}
	}
	rows = q.projectRows(rows)
	insertionSort(rows, q.orders)
	results := []any{}
	seen := map[string]bool{}
	for _, r := range rows {
		text, _ := json.Marshal(r.result) // Marshal sorts properties, so equal results have equal text
		if isMissing(r.result) || q.distinct && seen[string(text)] {
			continue
		}
		seen[string(text)] = true
		results = append(results, r.result)
	}
	if q.offset >= 0 {
		results = results[min(q.offset, len(results)):]
	}
	if q.top >= 0 {
		results = results[:min(q.top, len(results))]
	}
	return results
}

func (q modelQuery) projectRows(rows []modelRow) []modelRow {
	if q.group != nil || q.sums != nil {
		return q.groupRows(rows)
	}
	for i, r := range rows {
		switch {
		case q.star:
			rows[i].result = r.env["c"]
		case q.value:
			rows[i].result = q.columns[0].mean(r.env)
		default:
			rows[i].result = objectOf(q.columns, r.env)
		}
	}
	return rows
}

func objectOf(columns []modelExpr, e modelEnv) map[string]any {
	o := map[string]any{}
	for i, c := range columns {
		if v := c.mean(e); !isMissing(v) {
			o["k"+string(rune('0'+i))] = v
		}
	}
	return o
}

// documentPath matches a GROUP BY key by which groups are sorted.
var documentPath = regexp.MustCompile(`^c(\.\w+)*$`)

func (q modelQuery) groupRows(rows []modelRow) []modelRow {
	var names []string
	members := map[string][]modelRow{}
	for _, r := range rows {
		name, _ := json.Marshal(objectOf(q.group, r.env))
		if members[string(name)] == nil {
			names = append(names, string(name))
		}
		members[string(name)] = append(members[string(name)], r)
	}
	if len(q.group) == 0 {
		names = []string{"{}"}
	}
	if len(q.group) == 1 && documentPath.MatchString(q.group[0].text) {
		key := func(name string) any { return q.group[0].mean(members[name][0].env) }
		slices.SortStableFunc(names, func(a, b string) int { return compareModel(key(a), key(b)) })
	}
	var results []modelRow
	for _, name := range names {
		result := map[string]any{}
		if len(members[name]) > 0 {
			result = objectOf(q.group, members[name][0].env)
		}
		for i, sum := range q.sums {
			if v := sum.sumRows(members[name]); !isMissing(v) {
				result["s"+string(rune('0'+i))] = v
			}
		}
		results = append(results, modelRow{result: result})
	}
	return results
}

func (s modelSum) sumRows(rows []modelRow) any {
	var values []any
	for _, r := range rows {
		if v := s.arg.mean(r.env); !isMissing(v) {
			values = append(values, v)
		}
	}
	if s.function == "COUNT" {
		return float64(len(values))
	}
	total := 0.0
	best := any(missingValue{})
	for i, v := range values {
		n, ok := v.(float64)
		switch {
		case (s.function == "SUM" || s.function == "AVG") && !ok, typeRank(v) > 4:
			return missingValue{}
		case i == 0 || compareModel(v, best) < 0 == (s.function == "MIN") && compareModel(v, best) != 0:
			best = v
		}
		total += n
	}
	switch {
	case s.function == "SUM":
		return total
	case s.function == "AVG" && len(values) > 0:
		return total / float64(len(values))
	case s.function == "AVG":
		return missingValue{}
	}
	return best
}

// insertionSort sorts rows; the sort is stable.
func insertionSort(rows []modelRow, orders []modelOrder) {
	before := func(a, b modelRow) bool {
		for _, o := range orders {
			c := compareModel(getProperty(a.env["c"], o.name), getProperty(b.env["c"], o.name))
			if c != 0 {
				return c < 0 != o.descending
			}
		}
		return false
	}
	for i := range rows {
		for j := i; j > 0 && before(rows[j], rows[j-1]); j-- {
			rows[j], rows[j-1] = rows[j-1], rows[j]
		}
	}
}
