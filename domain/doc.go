// Package domain is the vocabulary and the rules of the message hub.
//
// A domain of the market announces that data is available for a recipient. The
// announcement is an [Event]. Events wait in cabinets, one for each recipient,
// origin and content type, until the recipient, an actor, peeks them as a
// [Bundle] and dequeues it:
//
//	recipient + origin + content type ─▶ cabinet ─▶ events, in Save order
//	group of origins ─▶ at most one open bundle, repeated until it is dequeued
//
// A [Message] that is published to a stream is delivered to each receiver of the stream. A receiver's
// [Cursor] contains its position in the stream and the state of each delivery. A [Policy] determines
// when a failed delivery is attempted again:
//
//	stream ─▶ cursor ─▶ delivery ─▶ delivered, or retry ─▶ … ─▶ dead letter
//
// An object store reports changes of its objects as [ObjectEvent] values, some of them twice and many
// out of order. An [Object] contains the state that results from all its events:
//
//	events ─▶ rows of each version, in the order of the store ─▶ current row, or none
//
// The package contains the rules that need no store: which values are valid, which events are
// delivered in one bundle ([Filler]), which origins share one open bundle ([Groups]), when two events
// with one id are the same ([Event.Digest]), and how a caller may react to an error ([Kind]). Only
// functions that validate their input create values such as an [ActorID], so these values need not be
// checked again.
//
// It uses no clock, network or store, and imports only the standard library.
package domain
