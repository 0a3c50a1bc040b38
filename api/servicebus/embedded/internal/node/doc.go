// Package node implements Service Bus on AMQP. Each address has a function:
//
//	$cbs                 accepts tokens, which grant rights to the connection
//	<entity>             sends and receives messages
//	<entity>/$management handles requests: renew, peek, schedule, sessions, rules, …
//
// The package connects package server, which implements links and deliveries, with package bus,
// which implements queues, locks and sessions. It translates the attributes of messages, the states
// of deliveries, and errors. It has no durable state.
//
// What it promises: a message is accepted, and a settlement confirmed, only after the bus has
// stored it. A refusal has the same condition as in Azure, because clients use the condition to
// decide whether to retry.
package node
