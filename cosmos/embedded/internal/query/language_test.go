package query

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shop is the document that the queries of this file read.
var shop = []string{
	`{"id":"1","kind":"tea","price":4,"tags":[{"n":"hot","w":2},{"n":"green","w":1}],"size":{"kg":1,"unit":"box"},"stock":[1,2]}`,
	`{"id":"2","kind":"tea","price":2.50,"tags":[{"n":"hot","w":3}],"size":{"unit":"box","kg":1},"stock":[2,3,null]}`,
	`{"id":"3","kind":"cup","price":null,"tags":[],"stock":"none"}`,
	`{"id":"4","price":"free","tags":[{"n":"new"}],"size":{"kg":2}}`,
	`{"id":"5","kind":"cup","price":9}`,
}

func TestClauses_WorkAsInCosmos(t *testing.T) {
	var docs [][]byte
	for _, d := range shop {
		docs = append(docs, mustCompact(t, d))
	}
	for _, tc := range []struct{ rule, query, want string }{
		{"SELECT * gives documents untouched", `SELECT * FROM c WHERE c.id = '5'`, shop[4]},
		{"numbers keep their form", `SELECT c.price FROM c WHERE c.id = '2'`, `{"price":2.50}`},
		{"AS may be left out", `SELECT c.id ident, c.price + 1 AS more FROM c WHERE c.id = '1'`, `{"ident":"1","more":5}`},
		{"columns without a name are numbered", `SELECT 1, c.price, c.price * 2 FROM c WHERE c.id = '1'`, `{"$1":1,"price":4,"$2":8}`},
		{"an undefined column is left out", `SELECT c.kind FROM c WHERE c.id = '4'`, `{}`},
		{"an undefined VALUE gives no result", `SELECT VALUE c.kind FROM c`, `"tea" "tea" "cup" "cup"`},
		{"constructors leave out what is undefined", `SELECT VALUE {"a": c.kind, b: [c.kind, c.price, 1]} FROM c WHERE c.id >= '4'`, `{"b":["free",1]} {"a":"cup","b":["cup",9,1]}`},
		{"a query without FROM gives one row", `SELECT VALUE 1 + 1`, `2`},
		{"and none if its condition is false", `SELECT VALUE 1 WHERE 1 > 2`, ``},

		{"the container may have any name", `SELECT VALUE docs.id FROM docs WHERE docs.price = 4`, `"1"`},
		{"or an alias", `SELECT VALUE p.id FROM products AS p WHERE p.price = 4`, `"1"`},
		{"ROOT is as good", `SELECT VALUE r.id FROM root r WHERE r.price = 4`, `"1"`},
		{"FROM a path gives what is there, by the last name", `SELECT VALUE size.kg FROM c.size`, `1 1 2`},
		{"FROM a path with an alias", `SELECT * FROM c.size s WHERE s.kg > 1`, `{"kg":2}`},
		{"FROM IN gives elements", `SELECT VALUE t.n FROM t IN c.tags`, `"hot" "green" "hot" "new"`},
		{"SELECT * of elements", `SELECT * FROM t IN c.tags WHERE t.w > 1`, `{"n":"hot","w":2} {"n":"hot","w":3}`},
		{"the container is no alias then", `SELECT VALUE n FROM n IN c["stock"] WHERE n != null`, `1 2 2 3`},
		{"FROM a subquery", `SELECT VALUE s.x FROM (SELECT c.price AS x FROM c WHERE IS_NUMBER(c.price)) AS s WHERE s.x > 3`, `4 9`},
		{"JOIN gives a row for each element", `SELECT c.id, t.n FROM c JOIN t IN c.tags`, `{"id":"1","n":"hot"} {"id":"1","n":"green"} {"id":"2","n":"hot"} {"id":"4","n":"new"}`},
		{"two JOINs cross", `SELECT VALUE CONCAT(c.id, t.n, ToString(s)) FROM c JOIN t IN c.tags JOIN s IN c.stock WHERE c.id = '1'`, `"1hot1" "1hot2" "1green1" "1green2"`},
		{"a JOIN over a JOIN", `SELECT VALUE k.k FROM c JOIN t IN c.tags JOIN k IN (SELECT VALUE ObjectToArray(t)) WHERE c.id = '1'`, `"n" "w" "n" "w"`},
		{"JOIN of a path", `SELECT c.id, s.kg FROM c JOIN c.size s`, `{"id":"1","kg":1} {"id":"2","kg":1} {"id":"4","kg":2}`},
		{"JOIN of a subquery gives its rows", `SELECT c.id, t.n FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE t.w > 1) AS t`, `{"id":"1","n":"hot"} {"id":"2","n":"hot"}`},
		{"JOIN IN a subquery gives the elements of its rows", `SELECT c.id, r.v FROM c JOIN r IN (SELECT VALUE [{"k": 4, "v": "four"}, {"k": 9, "v": "nine"}]) WHERE c.price = r.k`, `{"id":"1","v":"four"} {"id":"5","v":"nine"}`},
		{"an alias is a column", `SELECT c.id, t FROM c JOIN t IN c.stock WHERE t = 3`, `{"id":"2","t":3}`},
		{"an element that is null is a row", `SELECT VALUE s FROM c JOIN s IN c.stock WHERE c.id = '2'`, `2 3 null`},

		{"a scalar subquery", `SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c`, `2 1 0 1 0`},
		{"a scalar subquery without a row is undefined", `SELECT c.id, (SELECT VALUE t.w FROM t IN c.tags WHERE t.n = 'green') AS w FROM c WHERE c.id < '3'`, `{"id":"1","w":1} {"id":"2"}`},
		{"steps go into a subquery", `SELECT VALUE (SELECT t.n, t.w FROM t IN c.tags WHERE t.w = 3).n FROM c`, `"hot"`},
		{"EXISTS", `SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.n = 'hot' AND t.w > 2)`, `"2"`},
		{"EXISTS of undefined is false", `SELECT VALUE EXISTS(SELECT VALUE c.none) FROM c WHERE c.id = '1'`, `false`},
		{"NOT EXISTS", `SELECT VALUE c.id FROM c WHERE NOT EXISTS(SELECT * FROM t IN c.tags)`, `"3" "5"`},
		{"ARRAY", `SELECT VALUE ARRAY(SELECT VALUE t.n FROM t IN c.tags) FROM c WHERE c.id < '4'`, `["hot","green"] ["hot"] []`},
		{"ARRAY of DISTINCT", `SELECT VALUE ARRAY(SELECT DISTINCT VALUE s % 2 FROM s IN c.stock) FROM c WHERE c.id < '3'`, `[1,0] [0,1]`},
		{"groups of elements", `SELECT VALUE ARRAY(SELECT s > 1 AS many, COUNT(1) AS n FROM s IN c.stock GROUP BY s > 1) FROM c WHERE c.id = '1'`, `[{"many":false,"n":1},{"many":true,"n":1}]`},
		{"a subquery sees all aliases around it", `SELECT VALUE t.n FROM c JOIN t IN c.tags WHERE EXISTS(SELECT VALUE s FROM s IN c.stock WHERE s = t.w + 1)`, `"green"`},

		{"ARRAY of a window", `SELECT VALUE ARRAY(SELECT VALUE t.n FROM t IN c.tags ORDER BY t.n OFFSET 1 LIMIT 1) FROM c WHERE c.id = '1'`, `["hot"]`},
		{"ARRAY in order", `SELECT VALUE ARRAY(SELECT VALUE s FROM s IN c.stock ORDER BY s DESC) FROM c WHERE c.id = '2'`, `[3,2,null]`},
		{"ARRAY of DISTINCT in order", `SELECT VALUE ARRAY(SELECT DISTINCT VALUE t.n FROM t IN c.tags ORDER BY t.w) FROM c WHERE c.id = '1'`, `["green","hot"]`},
		{"a scalar subquery with TOP", `SELECT VALUE (SELECT TOP 1 VALUE t.n FROM t IN c.tags ORDER BY t.w) FROM c`, `"green" "hot" "new"`},
		{"EXISTS with TOP 0", `SELECT VALUE EXISTS(SELECT TOP 0 VALUE t FROM t IN c.tags) FROM c WHERE c.id = '1'`, `false`},
		{"JOIN of a subquery with TOP", `SELECT c.id, t.n FROM c JOIN (SELECT TOP 1 VALUE t FROM t IN c.tags) AS t`, `{"id":"1","n":"hot"} {"id":"2","n":"hot"} {"id":"4","n":"new"}`},
		{"an aggregate of a window", `SELECT VALUE (SELECT VALUE COUNT(1) FROM (SELECT TOP 1 VALUE t FROM t IN c.tags) t) FROM c`, `1 1 0 1 0`},
		{"FROM a window over the container", `SELECT VALUE r.id FROM (SELECT VALUE c FROM c ORDER BY c.price DESC OFFSET 1 LIMIT 3) AS r WHERE r.price > 3`, `"5" "1"`},
		{"FROM TOP over the container", `SELECT VALUE COUNT(1) FROM (SELECT TOP 2 VALUE root FROM root) AS r0`, `2`},
		{"SELECT * of a window", `SELECT * FROM (SELECT TOP 1 c.id FROM c) r`, `{"id":"1"}`},
		{"FROM groups", `SELECT VALUE SUM(g.n) FROM (SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind) AS g WHERE IS_DEFINED(g.kind)`, `4`},
		{"FROM a window over a window", `SELECT TOP 1 VALUE b.id FROM (SELECT TOP 2 VALUE a FROM (SELECT VALUE c FROM c OFFSET 1 LIMIT 4) a WHERE IS_DEFINED(a.kind)) b`, `"2"`},
		{"JOIN with a window over the container", `SELECT r.id, t.n FROM (SELECT TOP 1 VALUE c FROM c) r JOIN t IN r.tags`, `{"id":"1","n":"hot"} {"id":"1","n":"green"}`},
		{"OFFSET beside a window", `SELECT VALUE r.id FROM (SELECT TOP 4 VALUE c FROM c) r OFFSET 1 LIMIT 2`, `"2" "3"`},

		{"an alias may be a string", `SELECT c.id AS 'a b', c.kind AS "value" FROM c WHERE c.id = '1'`, `{"a b":"1","value":"tea"}`},
		{"ORDER BY beside an aggregate", `SELECT VALUE COUNT(1) FROM c ORDER BY c.price`, `5`},
		{"Infinity is more than each number", `SELECT VALUE c.id FROM c WHERE c.price < Infinity AND c.price > -Infinity`, `"1" "2" "5"`},
		{"NaN and Infinity are no JSON", `SELECT NaN AS a, [Infinity, 1] AS b, IS_FINITE_NUMBER(NaN) AS c, IS_NUMBER(-Infinity) AS d`, `{"b":[1],"c":false,"d":true}`},
		{"NaN equals no number, itself included", `SELECT VALUE [NaN = NaN, NaN != NaN, NaN < 1, 1 < NaN]`, `[false,true,false,false]`},
		{"functions of NaN and Infinity are undefined", `SELECT VALUE [LOG(NaN), LOG(NaN, 2), LOG(2, NaN), LOG10(NaN), LOG10(Infinity), TAN(NaN), TAN(Infinity), COT(-Infinity), ROUND(NaN, 2), NUMBERBIN(1, Infinity), 1 + NaN, -NaN]`, `[]`},
		{"RAND is from 0 on and below 1", `SELECT VALUE RAND() >= 0 AND RAND() < 1`, `true`},

		{"DISTINCT", `SELECT DISTINCT c.kind FROM c`, `{"kind":"tea"} {"kind":"cup"} {}`},
		{"DISTINCT VALUE leaves out undefined", `SELECT DISTINCT VALUE c.kind FROM c`, `"tea" "cup"`},
		{"DISTINCT knows equal objects in any order", `SELECT DISTINCT VALUE c.size FROM c`, `{"kg":1,"unit":"box"} {"kg":2}`},
		{"DISTINCT knows equal numbers in any form", `SELECT DISTINCT VALUE v FROM c JOIN v IN (SELECT VALUE [c.price, 2.5]) WHERE c.id = '2'`, `2.50`},
		{"DISTINCT of elements", `SELECT DISTINCT VALUE s FROM s IN c.stock`, `1 2 3 null`},
		{"TOP", `SELECT TOP 2 VALUE c.id FROM c`, `"1" "2"`},
		{"TOP 0", `SELECT TOP 0 VALUE c.id FROM c`, ``},
		{"TOP of a parameter", `SELECT TOP @n VALUE c.id FROM c`, `"1"`},
		{"TOP counts what DISTINCT left", `SELECT DISTINCT TOP 2 c.kind FROM c`, `{"kind":"tea"} {"kind":"cup"}`},
		{"TOP counts rows of a JOIN", `SELECT TOP 3 VALUE t.n FROM c JOIN t IN c.tags`, `"hot" "green" "hot"`},
		{"OFFSET and LIMIT", `SELECT VALUE c.id FROM c OFFSET 1 LIMIT 2`, `"2" "3"`},
		{"OFFSET and LIMIT of parameters", `SELECT VALUE c.id FROM c OFFSET @n LIMIT @n`, `"2"`},
		{"OFFSET beyond the end", `SELECT VALUE c.id FROM c OFFSET 9 LIMIT 2`, ``},

		{"ORDER BY puts undefined, null, numbers, strings in this order", `SELECT VALUE c.id FROM c ORDER BY c.price`, `"3" "2" "1" "5" "4"`},
		{"DESC turns it around", `SELECT VALUE c.id FROM c ORDER BY c.price DESC`, `"4" "5" "1" "2" "3"`},
		{"equal ones stay in the order of insertion", `SELECT VALUE c.id FROM c ORDER BY c.kind`, `"4" "3" "5" "1" "2"`},
		{"several paths", `SELECT VALUE c.id FROM c ORDER BY c.kind DESC, c.price ASC`, `"2" "1" "3" "5" "4"`},
		{"rows of a JOIN in the order of their documents", `SELECT VALUE t.n FROM c JOIN t IN c.tags ORDER BY c.price DESC OFFSET 1 LIMIT 2`, `"hot" "green"`},
		{"a function is joined by a subquery", `SELECT kv.k FROM c JOIN kv IN (SELECT VALUE OBJECTTOARRAY(c.size)) WHERE c.id = '1'`, `{"k":"kg"} {"k":"unit"}`},
		{"by a path of a subquery", `SELECT VALUE s.n FROM (SELECT c.id AS n, c.price AS p FROM c WHERE c.id < '5') AS s WHERE s.n > '1' ORDER BY s.p DESC`, `"4" "2" "3"`},
		{"by a path of a subquery of a subquery", `SELECT VALUE t.id FROM (SELECT VALUE s.o FROM (SELECT {"id": c.id, "k": c.kind} AS o FROM c) AS s) AS t ORDER BY t.k, t.id DESC`, `"4" "5" "3" "2" "1"`},
		{"by the value of a subquery", `SELECT VALUE s FROM (SELECT VALUE c.price FROM c) AS s ORDER BY s DESC`, `"free" 9 4 2.50 null`},
		{"by a path of a path", `SELECT VALUE s.kg FROM c.size AS s ORDER BY s.kg DESC`, `2 1 1`},
		{"by an alias of a JOIN", `SELECT VALUE c.id FROM c JOIN (SELECT VALUE c.size) AS s ORDER BY s.kg, c.id DESC`, `"2" "1" "4"`},
		{"DISTINCT in order", `SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC`, `"tea" "cup"`},

		{"COUNT counts rows", `SELECT VALUE COUNT(1) FROM c`, `5`},
		{"COUNT leaves out undefined", `SELECT VALUE COUNT(c.kind) FROM c`, `4`},
		{"COUNT of nothing is 0", `SELECT VALUE COUNT(1) FROM c WHERE false`, `0`},
		{"COUNT of the rows of a JOIN", `SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags`, `4`},
		{"SUM", `SELECT VALUE SUM(c.price) FROM c WHERE IS_NUMBER(c.price)`, `15.5`},
		{"SUM over anything but numbers is undefined", `SELECT VALUE SUM(c.price) FROM c`, ``},
		{"SUM leaves out undefined", `SELECT VALUE SUM(c.size.kg) FROM c`, `4`},
		{"AVG", `SELECT VALUE AVG(c.size.kg) FROM c WHERE c.kind = 'tea'`, `1`},
		{"AVG of nothing is undefined", `SELECT AVG(c.none) AS a, COUNT(1) AS n FROM c`, `{"n":5}`},
		{"MIN and MAX compare types", `SELECT MIN(c.price) AS low, MAX(c.price) AS high FROM c`, `{"low":null,"high":"free"}`},
		{"MAX over an object is undefined", `SELECT VALUE MAX(c.size) FROM c`, ``},
		{"aggregates in expressions", `SELECT VALUE {"mean": SUM(c.size.kg) / COUNT(c.size), "n": [COUNT(1)]} FROM c`, `{"mean":1.3333333333333333,"n":[5]}`},
		{"aggregates without a name", `SELECT COUNT(1), MAX(c.id) FROM c`, `{"$1":5,"$2":"5"}`},
		{"aggregates of subqueries", `SELECT VALUE MAX((SELECT VALUE COUNT(1) FROM t IN c.tags)) FROM c`, `2`},
		{"a subquery that aggregates does not make the query do so", `SELECT c.id, (SELECT VALUE MAX(t.w) FROM t IN c.tags) AS m FROM c WHERE c.id < '3'`, `{"id":"1","m":2} {"id":"2","m":3}`},
		{"TOP 0 of an aggregate", `SELECT TOP 0 VALUE COUNT(1) FROM c`, ``},
		{"GROUP BY", `SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind`, `{"n":1} {"kind":"cup","n":2} {"kind":"tea","n":2}`},
		{"GROUP BY without an aggregate", `SELECT c.kind FROM c GROUP BY c.kind`, `{} {"kind":"cup"} {"kind":"tea"}`},
		{"groups of several paths, or of an expression, come in the order of their rows", `SELECT c.kind, c.size.unit FROM c GROUP BY c.kind, c.size.unit OFFSET 0 LIMIT 2`, `{"kind":"tea","unit":"box"} {"kind":"cup"}`},
		{"GROUP BY an expression", `SELECT IS_NUMBER(c.price) AS priced, MIN(c.id) AS first FROM c GROUP BY IS_NUMBER(c.price)`, `{"priced":true,"first":"1"} {"priced":false,"first":"3"}`},
		{"GROUP BY several", `SELECT c.kind, c.size.unit, COUNT(1) n FROM c WHERE c.kind = 'tea' GROUP BY c.kind, c.size.unit`, `{"kind":"tea","unit":"box","n":2}`},
		{"GROUP BY an object, and a step into the key", `SELECT VALUE c.size.kg + COUNT(1) FROM c GROUP BY c.size`, `3 3`},
		{"GROUP BY of elements", `SELECT t.n, SUM(t.w) AS w FROM c JOIN t IN c.tags GROUP BY t.n`, `{"n":"hot","w":5} {"n":"green","w":1} {"n":"new","w":0}`},
		{"the key may be written in another way", `SELECT c["kind"] FROM c GROUP BY c . kind OFFSET 2 LIMIT 1`, `{"kind":"tea"}`},
		{"GROUP BY with TOP", `SELECT TOP 1 c.kind FROM c GROUP BY c.kind`, `{}`},
		{"GROUP BY with VALUE", `SELECT VALUE c.kind FROM c GROUP BY c.kind`, `"cup" "tea"`},
		{"no group of no rows", `SELECT c.kind, COUNT(1) FROM c WHERE false GROUP BY c.kind`, ``},
		{"DISTINCT groups", `SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.kind`, `1 2`},

		{"a comment runs to the end of the line", "SELECT VALUE c.id -- not c.kind\nFROM c WHERE c.id = '1'", `"1"`},
		{"keywords in any case", "sElEcT vAlUe c.id fRoM c wHeRe c.id In ('1') oRdEr bY c.id", `"1"`},
		{"properties may be called as keywords", `SELECT VALUE {"value": 1}.value`, `1`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			q, err := Parse(t.Context(), tc.query, params)
			require.NoError(t, err, tc.query)
			got, err := runQuery(q, docs)
			require.NoError(t, err)
			require.Equal(t, tc.want, strings.Join(got, " "), tc.query)
			again, err := Parse(context.Background(), q.Print(), params)
			require.NoError(t, err, q.Print())
			same, err := runQuery(again, docs)
			require.NoError(t, err)
			require.Equal(t, got, same, "printed as %s", q.Print())
		})
	}
}

func TestEvaluation_ReportsThePositionOfAFailure(t *testing.T) {
	doc := mustCompact(t, `{"l":[1,2,3,4,5,6,7,8,9,10],"s":"("}`)
	for text, at := range map[string]int{
		"SELECT VALUE (SELECT VALUE x FROM x IN c.l) FROM c": 13,
		"SELECT * FROM c WHERE RegexMatch('x', c.s)":         22,
		"SELECT VALUE 1 FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l JOIN e IN c.l JOIN f IN c.l JOIN g IN c.l JOIN h IN c.l": 0,
	} {
		_, err := runQuery(mustParse(t, text, nil), [][]byte{doc})
		var failed *Error
		require.ErrorAs(t, err, &failed, text)
		require.Equal(t, at, failed.Position, text)
	}
}
