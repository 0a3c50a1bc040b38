// Package amqp encodes and decodes AMQP 1.0: values, frames, performatives and messages. It has
// no connections and starts no goroutines.
//
//	value        what a field can hold: numbers, strings, lists, maps, …
//	frame        a size, a channel, and a body
//	performative open, begin, attach, flow, transfer, disposition, detach, …
//	message      sections: header, annotations, properties, body, footer
//
// Input is not trusted. A Decoder reads from a slice in memory, so a size beyond the slice is
// an error and causes no allocation; nesting and the number of elements are bounded. No input
// causes a panic.
//
// A message is not decoded completely: Split finds its sections and keeps their bytes, so that
// they reach the receiver unchanged.
//
// What it leaves to others: the order of performatives (package server), and the meaning of
// messages.
package amqp
