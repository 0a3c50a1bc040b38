// Package amqp is the language of AMQP 1.0: values, frames, performatives and
// messages, to and from bytes. It holds no connection and starts nothing.
//
//	value        what a field can hold: numbers, strings, lists, maps, …
//	frame        a size, a channel, and a body
//	performative open, begin, attach, flow, transfer, disposition, detach, …
//	message      sections: header, annotations, properties, body, footer
//
// What comes in is never trusted. A Decoder reads from a slice that is already
// in memory, so a size that promises more than there is, is an error and no
// allocation; nesting and the number of elements are bounded. No input makes it
// panic, and a failure leaves nothing behind but its error.
//
// A message is not decoded as a whole: Split finds its sections and keeps the
// bytes of each, so that what a sender wrote reaches the receiver unchanged.
//
// What it leaves to others: who may send which performative when (package
// server), and what a message means.
package amqp
