// Package filter evaluates the JMESPath expressions of subscriptions on the metadata of an
// event.
//
// An expression is written by anybody, so its cost is bounded before it is accepted. A short
// expression can ask for any amount of memory: each [@,@][] doubles a list. [Compile] walks
// the tree of the expression and computes how large a result may be, and how much an
// evaluation may allocate, as linear functions of the size of the current value. They add up:
// a list is as large as its elements together, so an expression that is evaluated on each of
// them costs as much as on all of them at once, and its constant part once for each. What has
// no linear bound, or asks for more than [MaxMemory] on metadata of [MaxMetadata] bytes, is
// refused.
//
// The language is standard JMESPath with its 26 functions, and arithmetic and the root $ as
// in JMESPath Community. let and the other functions of JMESPath Community are refused.
package filter
