// Package filter evaluates the JMESPath expressions of subscriptions on the metadata of an
// event.
//
// Expressions come from untrusted clients, so the cost of an expression is bounded before it is
// accepted. A short expression can require any amount of memory: each [@,@][] doubles a list.
// [Compile] walks the tree of the expression and computes how large a result may be, and how
// much an evaluation may allocate, as linear functions of the size of the current value. The
// functions can be added: the sizes of the elements add up to the size of the list, so evaluating
// an expression on each element costs as much as on the whole list, plus the constant part for
// each element.
// An expression is refused if it has no linear bound, or requires more than [MaxMemory] on
// metadata of [MaxMetadata] bytes.
//
// The language is standard JMESPath with its 26 functions, and arithmetic and the root $ as
// in JMESPath Community. let and the other functions of JMESPath Community are refused.
package filter
