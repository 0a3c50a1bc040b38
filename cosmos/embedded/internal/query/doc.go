// Package query reads and evaluates the subset of Cosmos DB SQL that the
// engine speaks:
//
//	SELECT [TOP n] * | VALUE expr | expr [AS name], …
//	FROM name [[AS] alias]
//	[WHERE condition]
//	[ORDER BY path [ASC|DESC], …]
//	[OFFSET n LIMIT m]
//
// Expressions are literals, @parameters, property paths (c.a.b, c["a"],
// c.a[0]), = != <> < <= > >=, AND, OR, NOT, IN, BETWEEN, parentheses, the
// functions listed in functions.go, and, after SELECT VALUE, one of the
// aggregates COUNT, SUM, MIN, MAX, AVG. Anything else is an *Error with the
// position where it starts. Nothing is guessed.
//
// A missing property is undefined, which is not null: comparing it gives
// undefined again, and WHERE keeps only what is true. Values of different
// types are unequal, and undefined when compared by size. ORDER BY puts
// undefined before null, then false, true, numbers, strings, arrays, objects.
//
// The package knows nothing of storage. The engine gives it one document
// after the other.
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
