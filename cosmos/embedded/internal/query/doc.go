// Package query reads and evaluates Cosmos DB SQL over the documents of one
// container:
//
//	SELECT [DISTINCT] [TOP n] * | VALUE expr | expr [[AS] name], …
//	[FROM source [JOIN source] …]
//	[WHERE condition]
//	[GROUP BY expr, …]
//	[ORDER BY path [ASC|DESC], …]
//	[OFFSET n LIMIT m]
//
// A source is a path or a subquery, [AS] alias, or alias IN one of them for
// each of its elements. Without FROM a query gives one row. Counts are
// numbers or @parameters. From what binds loosest, an expression is made of
//
//	a ? b : c     ??     OR     AND     NOT
//	= != <> < <= > >=  [NOT] IN  [NOT] BETWEEN  [NOT] LIKE … [ESCAPE …]
//	|     ^     &     << >> >>>     + - ||     * / %     - + ~
//	.name  ["name"]  [index]
//
// of constants, @parameters, paths, {"name": expr}, [expr], the functions
// listed in functions*.go, the aggregates COUNT, SUM, MIN, MAX and AVG, and
// the subqueries (SELECT …), EXISTS(SELECT …) and ARRAY(SELECT …). Anything
// else is an *Error with the position where it starts. Nothing is guessed.
//
// A missing property is undefined, which is not null: comparing it gives
// undefined again, and WHERE keeps only what is true. Values of different
// types are unequal, and undefined when compared by size. A constructor leaves
// out what is undefined. ORDER BY puts undefined before null, then false,
// true, numbers, strings, arrays, objects; its paths have to lead into the
// document, where an index can be. Whether that index has documents without
// the path is for the engine to say, with OnlySorted.
//
// Where the documents of Cosmos DB leave a choice, this is what was chosen.
// = and != of two types give false and true, as the service does, though the
// table of comparisons says undefined; so c.a != null finds what is not null.
// Lengths and positions in strings count characters. A set in LIKE follows
// SQL Server. FullTextContains compares words, not their stems. A regular
// expression is one of package regexp, and any other is refused. Arguments of
// a wrong type give undefined, as do numbers that JSON cannot hold.
//
// A query becomes results in three steps:
//
//	text ─ parser ─▶ nodes ─ compiler ─▶ exprs ─ slots of a row ─▶ JSON
//
// The parser knows no aliases, and the compiler no documents. An expr knows
// slots only: raw JSON that Extract found in a document, that FROM bound to an
// alias, or that a group gathered. So only what a query names is ever looked
// at, and SELECT * passes documents through untouched.
//
// The work of a query is bounded. Its text is parsed and compiled in time that
// grows with its length; a chain of operators is flat, and a list of constants has
// a lookup. Evaluation counts its steps in Slots: they end with the context of the
// request, at Limits for one document, and for one page.
//
// The package knows nothing of storage. The engine gives it one document
// after the other, and learns from Streams and Local whether each of them
// has a result of its own, and from Analyze which of them an index would find.
package query

import "fmt"

// An Error says where a query stops being one that the engine can answer.
type Error struct {
	Position int // in bytes from the start of the text
	Reason   string
}

func (e *Error) Error() string {
	return fmt.Sprintf("query, position %d: %s", e.Position, e.Reason)
}
