// Package query parses and evaluates Cosmos DB SQL over the documents of one container:
//
//	SELECT [DISTINCT] [TOP n] * | VALUE expr | expr [[AS] name | AS 'name'], …
//	[FROM source [JOIN source] …]
//	[WHERE condition]
//	[GROUP BY expr, …]
//	[ORDER BY path [ASC|DESC], …]
//	[OFFSET n LIMIT m]
//
// A source is a path or a subquery with [AS] alias, or alias IN followed by a path or a subquery,
// which has a row for each element. Without FROM a query has one row. Counts are numbers or
// @parameters. The operators,
// from the lowest precedence, are
//
//	a ? b : c     ??     OR     AND     NOT
//	= != <> < <= > >=  [NOT] IN  [NOT] BETWEEN  [NOT] LIKE … [ESCAPE …]
//	|     ^     &     << >> >>>     + - ||     * / %     - + ~
//	.name  ["name"]  [index]
//
// of constants, @parameters, paths, {"name": expr}, [expr], the functions listed in
// functions*.go, the aggregates COUNT, SUM, MIN, MAX and AVG, and the subqueries (SELECT …),
// EXISTS(SELECT …) and ARRAY(SELECT …). The constants NaN and Infinity can be compared with
// numbers, and are omitted from results, because JSON has no such numbers. Parse refuses any other
// text with an *Error that has the position and, for an unknown function, its name.
//
// A missing property is undefined, which differs from null: a comparison with it is undefined,
// and WHERE keeps only documents for which the condition is true. Values of different types are
// unequal; comparing them by order is undefined. A constructor omits undefined members.
// ORDER BY sorts undefined before null, then false, true, numbers, strings, arrays, objects. Its
// paths must be paths of the document, which an index can contain. An alias of such a path, or of a
// subquery that selects one, is allowed, too. ORDER BY of a subquery accepts any path. With an
// aggregate and without GROUP BY, ORDER BY has no effect. With OnlySorted, documents without the path
// are not results. GROUP BY one path returns the groups in the order of the path, as the service
// does; all other groups are in the order of their first rows.
//
// Where the documentation of Cosmos DB is ambiguous, the package does the following. For values of
// two types, = is false and != is true, as on the service, although the documented table says
// undefined; so c.a != null finds values that are not null. Lengths and positions in strings
// count characters. A set in LIKE follows SQL Server. FullTextContains compares words, not
// their stems. Regular expressions have the syntax of package regexp. The result is undefined
// for arguments of a wrong type and for numbers that JSON cannot represent.
//
// A subquery in the outermost FROM may combine documents by TOP, OFFSET, ORDER BY, DISTINCT, GROUP BY
// or an aggregate. It then becomes a separate Query, the Source, and Derive evaluates the outer query
// over the results of the Source. The service differs: it evaluates such a subquery in each physical
// partition, and so returns a group once for each partition, and it refuses TOP, OFFSET and ORDER BY
// in all subqueries.
//
// A query is processed in three steps:
//
//	text ─ parser ─▶ nodes ─ compiler ─▶ exprs ─ slots of a row ─▶ JSON
//
// The parser does not resolve aliases, and the compiler does not read documents. An expr reads
// slots only: raw JSON that Extract found in a document, that FROM bound to an alias, or that a
// group collected. So only the values that a query names are read, and SELECT * returns
// documents unchanged.
//
// The work of a query is bounded. Parsing and compiling take time proportional to the text: a
// chain of operators is flat, and a list of constants has a lookup table. Evaluation counts its
// steps in Slots. It stops when the context of the request ends, and at the Limits for one
// document and for one page.
//
// The package does not access storage. The engine passes one document after the other. Streams
// and Local report whether each document has its own result, and Analyze reports which
// documents an index would find.
package query

import "fmt"

// An Error reports the position at which a query is invalid or unsupported.
type Error struct {
	Position int // offset in bytes from the start of the text
	Reason   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("query, position %d: %s", e.Position, e.Reason)
}
