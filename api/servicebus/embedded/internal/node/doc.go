// Package node implements Service Bus on AMQP: it maps addresses to functions.
//
//	$cbs                 takes tokens, which grant rights to the connection
//	<entity>             sending and receiving messages
//	<entity>/$management requests: renew, peek, schedule, sessions, rules, …
//
// It translates between package server, which knows links and deliveries, and package bus,
// which knows queues, locks and sessions: attributes of messages, states of deliveries, errors
// and conditions. It has no durable state.
//
// What it promises: a message is accepted, and a settlement confirmed, only after the bus has
// stored it. A refusal has the condition of the real service, because clients decide by it
// whether to retry.
package node
