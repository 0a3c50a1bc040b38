// Package energymarket makes the load of the demo and of the crash tests: a day of a
// small energy market, with actors, domains, events and market documents. Its ledger
// compares what the actors received with what the domains sent.
//
// It makes data and starts nothing: the commands and the tests send it to a hub. It is
// internal to the command, because the bench has loads of its own.
package energymarket
