// Package amqp encodes and decodes AMQP 1.0: values, frames, performatives and messages. It has
// no connections and starts no goroutines.
//
//	value        number, string, list, map, …
//	frame        a size, a channel, and a body
//	performative open, begin, attach, flow, transfer, disposition, detach, …
//	message      sections: header, annotations, properties, body, footer
//
// Input is not trusted. A Decoder reads from a slice in memory, so a size beyond the slice is an
// error and causes no allocation. Nesting and the number of elements are limited. No input causes
// a panic.
//
// A message is not decoded completely: Split finds its sections and returns their bytes, so that
// the receiver gets them unchanged.
//
// Package server validates the order of performatives. Package node interprets messages.
package amqp
