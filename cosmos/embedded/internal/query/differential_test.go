package query

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	scalarTexts = []string{"null", "true", "false", "-1", "0", "1", "2", "2.5", `""`, `"a"`, `"ab"`, `"B"`, `"ä"`}
	names       = []string{"a", "b", "l", "o", "none"}
)

func drawJSON(t *rapid.T, depth int) string {
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 0 && depth > 0:
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawJSON(t, depth-1) }), 0, 3).Draw(t, "items")
		return "[" + strings.Join(items, ",") + "]"
	case kind == 1 && depth > 0:
		return drawObject(t, depth-1)
	}
	return rapid.SampledFrom(scalarTexts).Draw(t, "scalar")
}

func drawObject(t *rapid.T, depth int) string {
	var parts []string
	for _, name := range names[:4] {
		if rapid.IntRange(0, 3).Draw(t, name) == 0 {
			continue
		}
		value := drawJSON(t, depth)
		if name == "l" && rapid.Bool().Draw(t, "list") {
			value = "[" + drawJSON(t, depth) + "," + drawJSON(t, 0) + "]"
		}
		parts = append(parts, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func decodeJSON(text string) any {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(err)
	}
	return v
}

// An exprGenerator draws expressions over the aliases in scope.
type exprGenerator struct {
	*rapid.T
	aliases []string
}

func (d exprGenerator) pickText(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(d.T, label)
}

func (d exprGenerator) drawPath() modelExpr {
	alias := d.pickText("alias", d.aliases...)
	e := modelExpr{alias, func(in modelEnv) any { return in[alias] }}
	for range rapid.IntRange(0, 2).Draw(d.T, "steps") {
		base, name := e, d.pickText("name", names...)
		e = modelExpr{base.text + "." + name, func(in modelEnv) any { return getProperty(base.mean(in), name) }}
	}
	return e
}

func (d exprGenerator) drawExpr(depth int) modelExpr {
	if depth == 0 {
		if rapid.Bool().Draw(d.T, "path") {
			return d.drawPath()
		}
		text := d.pickText("scalar", scalarTexts...)
		return modelExpr{text, func(modelEnv) any { return decodeJSON(text) }}
	}
	a, b := d.drawExpr(depth-1), d.drawExpr(depth-1)
	switch d.pickText("form", "compare", "compare", "logic", "arithmetic", "not", "choice", "coalesce", "in", "between", "like", "call", "list", "object", "subquery") {
	case "compare":
		op := d.pickText("op", "=", "!=", "<", "<=", ">", ">=")
		return d.drawInfix(op, a, b, modelCompare)
	case "logic":
		return d.drawInfix(d.pickText("op", "AND", "OR"), a, b, modelLogic)
	case "arithmetic":
		return d.drawInfix(d.pickText("op", "+", "-", "*", "/", "%", "||"), a, b, modelArithmetic)
	case "not":
		return modelExpr{"(NOT " + a.text + ")", func(in modelEnv) any {
			if v, ok := a.mean(in).(bool); ok {
				return !v
			}
			return missingValue{}
		}}
	case "choice":
		c := d.drawExpr(depth - 1)
		return modelExpr{"(" + c.text + " ? " + a.text + " : " + b.text + ")", func(in modelEnv) any {
			if c.mean(in) == any(true) {
				return a.mean(in)
			}
			return b.mean(in)
		}}
	case "coalesce":
		return modelExpr{"(" + a.text + " ?? " + b.text + ")", func(in modelEnv) any {
			if v := a.mean(in); !isMissing(v) {
				return v
			}
			return b.mean(in)
		}}
	}
	return d.drawOther(a, b)
}

func (d exprGenerator) drawInfix(op string, a, b modelExpr, mean func(op string, a, b any) any) modelExpr {
	return modelExpr{"(" + a.text + " " + op + " " + b.text + ")", func(in modelEnv) any { return mean(op, a.mean(in), b.mean(in)) }}
}

func (d exprGenerator) drawOther(a, b modelExpr) modelExpr {
	switch d.pickText("other form", "in", "between", "like", "call", "list", "object", "subquery") {
	case "in":
		return modelExpr{"(" + a.text + " IN (1, " + b.text + "))", func(in modelEnv) any {
			return modelLogic("OR", modelCompare("=", a.mean(in), 1.0), modelCompare("=", a.mean(in), b.mean(in)))
		}}
	case "between":
		return modelExpr{"(" + a.text + " BETWEEN 0 AND " + b.text + ")", func(in modelEnv) any {
			return modelLogic("AND", modelCompare(">=", a.mean(in), 0.0), modelCompare("<=", a.mean(in), b.mean(in)))
		}}
	case "like":
		pattern := d.pickText("pattern", "%", "a%", "%b", "_", "", "%a%", "B")
		return modelExpr{"(" + a.text + " LIKE '" + pattern + "')", func(in modelEnv) any { return modelLike(a.mean(in), pattern) }}
	case "list":
		return modelExpr{"[" + a.text + ", " + b.text + "]", func(in modelEnv) any {
			list := []any{}
			for _, v := range []any{a.mean(in), b.mean(in)} {
				if !isMissing(v) {
					list = append(list, v)
				}
			}
			return list
		}}
	case "object":
		return modelExpr{"{k0: " + a.text + ", \"k1\": " + b.text + "}", func(in modelEnv) any { return objectOf([]modelExpr{a, b}, in) }}
	case "subquery":
		return d.drawSubquery()
	}
	return d.drawCall(a, b)
}

func (d exprGenerator) drawCall(a, b modelExpr) modelExpr {
	name := d.pickText("function", "IS_DEFINED", "IS_NUMBER", "IS_NULL", "IS_STRING", "STARTSWITH", "CONTAINS", "ARRAY_LENGTH", "ARRAY_CONTAINS", "ABS")
	one := map[string]func(v any) any{
		"IS_DEFINED": func(v any) any { return typeRank(v) > 0 }, "IS_NULL": func(v any) any { return typeRank(v) == 1 },
		"IS_NUMBER": func(v any) any { return typeRank(v) == 3 }, "IS_STRING": func(v any) any { return typeRank(v) == 4 },
		"ARRAY_LENGTH": func(v any) any {
			if list, ok := v.([]any); ok {
				return float64(len(list))
			}
			return missingValue{}
		},
		"ABS": func(v any) any {
			if n, ok := v.(float64); ok {
				return max(n, -n)
			}
			return missingValue{}
		},
	}
	if mean, ok := one[name]; ok {
		return modelExpr{name + "(" + a.text + ")", func(in modelEnv) any { return mean(a.mean(in)) }}
	}
	two := func(v, w any) any {
		s, ok := v.(string)
		part, also := w.(string)
		list, isList := v.([]any)
		switch {
		case name == "ARRAY_CONTAINS" && isList && !isMissing(w):
			found := any(false)
			for _, item := range list {
				found = modelLogic("OR", found, modelCompare("=", item, w))
			}
			return found
		case name == "STARTSWITH" && ok && also:
			return strings.HasPrefix(s, part)
		case name == "CONTAINS" && ok && also:
			return strings.Contains(s, part)
		}
		return missingValue{}
	}
	return modelExpr{name + "(" + a.text + ", " + b.text + ")", func(in modelEnv) any { return two(a.mean(in), b.mean(in)) }}
}

// drawSubquery draws a subquery over the list of an alias, with a new alias.
func (d exprGenerator) drawSubquery() modelExpr {
	from := d.pickText("from", d.aliases...)
	inner := fmt.Sprintf("s%d", len(d.aliases))
	if len(d.aliases) > 3 {
		return modelExpr{"1", func(modelEnv) any { return 1.0 }}
	}
	in := exprGenerator{d.T, append(append([]string{}, d.aliases...), inner)}
	where, value := in.drawExpr(1), in.drawExpr(1)
	rows := func(outer modelEnv) []any {
		found := []any{}
		items, _ := getProperty(outer[from], "l").([]any)
		for _, item := range items {
			e := modelEnv{inner: item}
			for name, v := range outer {
				e[name] = v
			}
			if v := value.mean(e); where.mean(e) == any(true) && !isMissing(v) {
				found = append(found, v)
			}
		}
		return found
	}
	source := fmt.Sprintf("FROM %s IN %s.l WHERE %s)", inner, from, where.text)
	switch d.pickText("subquery", "EXISTS", "ARRAY", "COUNT") {
	case "EXISTS":
		return modelExpr{"EXISTS(SELECT VALUE " + value.text + " " + source, func(in modelEnv) any { return len(rows(in)) > 0 }}
	case "ARRAY":
		return modelExpr{"ARRAY(SELECT VALUE " + value.text + " " + source, func(in modelEnv) any { return rows(in) }}
	}
	return modelExpr{"(SELECT VALUE COUNT(" + value.text + ") " + source, func(in modelEnv) any { return float64(len(rows(in))) }}
}

func (d exprGenerator) drawQuery() (modelQuery, string) {
	q := modelQuery{top: -1, offset: -1, join: rapid.IntRange(0, 2).Draw(d.T, "join") == 0}
	if q.join {
		d.aliases = append(d.aliases, "t")
	}
	from := " FROM c"
	if q.join {
		from += " JOIN t IN c.l"
	}
	if rapid.IntRange(0, 3).Draw(d.T, "where") > 0 {
		where := d.drawExpr(2)
		q.where = &where
		from += " WHERE " + where.text
	}
	var columns string
	if rapid.IntRange(0, 3).Draw(d.T, "group") == 0 {
		columns, from = d.drawGroups(&q, from)
	} else {
		columns, from = d.drawColumns(&q, from)
	}
	if q.distinct = rapid.IntRange(0, 3).Draw(d.T, "distinct") == 0; q.distinct {
		columns = "DISTINCT " + columns
	}
	if rapid.IntRange(0, 3).Draw(d.T, "window") == 0 {
		q.top, q.offset = rapid.IntRange(0, 3).Draw(d.T, "limit"), rapid.IntRange(0, 3).Draw(d.T, "offset")
		from += fmt.Sprintf(" OFFSET %d LIMIT %d", q.offset, q.top)
	}
	return q, "SELECT " + columns + from
}

func (d exprGenerator) drawColumns(q *modelQuery, from string) (string, string) {
	for i := range rapid.IntRange(0, 2).Draw(d.T, "orders") {
		o := modelOrder{d.pickText("order", names...), rapid.Bool().Draw(d.T, "descending")}
		q.orders = append(q.orders, o)
		from += []string{" ORDER BY", ","}[i] + " c." + o.name + map[bool]string{true: " DESC"}[o.descending]
	}
	switch rapid.IntRange(0, 2).Draw(d.T, "select") {
	case 0:
		if q.star = !q.join; q.star {
			return "*", from
		}
		fallthrough
	case 1:
		q.value, q.columns = true, []modelExpr{d.drawExpr(1)}
		return "VALUE " + q.columns[0].text, from
	}
	q.columns = []modelExpr{d.drawExpr(1), d.drawPath()}
	return q.columns[0].text + " AS k0, " + q.columns[1].text + " k1", from
}

func (d exprGenerator) drawGroups(q *modelQuery, from string) (columns, rest string) {
	var parts []string
	for i := range rapid.IntRange(0, 2).Draw(d.T, "keys") {
		key := d.drawExpr(rapid.IntRange(0, 1).Draw(d.T, "depth"))
		q.group = append(q.group, key)
		from += []string{" GROUP BY ", ", "}[i] + key.text
		parts = append(parts, fmt.Sprintf("%s AS k%d", key.text, i))
	}
	for i := range rapid.IntRange(1, 3).Draw(d.T, "sums") {
		sum := modelSum{d.pickText("aggregate", "COUNT", "SUM", "AVG", "MIN", "MAX"), d.drawExpr(rapid.IntRange(0, 1).Draw(d.T, "depth"))}
		q.sums = append(q.sums, sum)
		parts = append(parts, fmt.Sprintf("%s(%s) s%d", sum.function, sum.arg.text, i))
	}
	return strings.Join(parts, ", "), from
}

// TestQuery_GivesTheResultsOfTheModel compares the package with the model on random queries. It also checks the
// analysis of each query against the documents.
func TestQuery_GivesTheResultsOfTheModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		texts := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) string { return drawObject(r, 2) }), 0, 6).Draw(r, "documents")
		var docs [][]byte
		var plain []any
		for _, text := range texts {
			docs = append(docs, []byte(text))
			plain = append(plain, decodeJSON(text))
		}
		for range 10 {
			model, text := exprGenerator{r, []string{"c"}}.drawQuery()
			q, err := Parse(context.Background(), text, nil)
			require.NoError(r, err, text)
			results, err := runQuery(q, docs)
			require.NoError(r, err, text)
			got := []any{}
			for _, result := range results {
				got = append(got, decodeJSON(result))
			}
			require.Equal(r, model.runModel(plain), got, "%s\n%s", text, strings.Join(texts, "\n"))
			for _, doc := range docs {
				checkPredicates(t, q, doc)
			}
		}
	})
}
