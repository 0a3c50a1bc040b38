// Package node is Service Bus on AMQP: it gives addresses their meaning.
//
//	$cbs                 takes tokens, and remembers what the connection may do
//	<entity>             messages in, and messages out
//	<entity>/$management requests: renew, peek, schedule, sessions, rules, …
//
// It translates between package server, which knows links and deliveries, and
// package bus, which knows queues, locks and sessions: attributes of messages,
// states of deliveries, errors and conditions. It keeps nothing that has to
// last.
//
// What it promises: a message is accepted only when the bus has stored it, and
// a settlement is confirmed only when the bus has. What a client may not do is
// refused with the condition that the real service uses, because clients decide
// by it whether to try again.
package node
