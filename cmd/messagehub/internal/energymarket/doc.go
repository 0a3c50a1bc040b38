// Package energymarket generates the load of the demo and of the crash tests: a
// day of a small energy market, with actors, domains, events and market
// documents. Its ledger compares the events that the actors received with the
// events that the domains sent.
//
// The package only generates data: the commands and the tests send the data to
// a hub. It is internal to the command, because the bench generates its own
// load.
package energymarket
