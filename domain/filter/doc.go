// Package filter evaluates the JMESPath expressions of subscriptions on the metadata of an
// event.
//
// Expressions come from untrusted clients, so the cost of an expression is bounded before it is
// accepted. A short expression can require any amount of memory: each [@,@][] doubles a list.
// [Compile] walks the tree of the expression and computes how large a result may be, and how
// much an evaluation may allocate, as linear functions of the size of the current value. Linear
// bounds also work for lists: the sizes of the elements add up to at most the size of the list, so
// evaluating an expression on every element costs at most the linear part for the whole list and
// the constant part for each element.
//
// An expression is refused if it has no linear bound, or if it may allocate more than [MaxMemory]
// for metadata of [MaxMetadata] bytes.
//
// The language is standard JMESPath with its 26 functions, and arithmetic and the root $ as
// in JMESPath Community. The let expressions and the additional functions of JMESPath Community are
// refused.
package filter
