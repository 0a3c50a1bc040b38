// Package emulator starts one embedded engine without a hub, for any client: a Cosmos DB account
// ([Cosmos]), a Service Bus namespace ([ServiceBus]) or a Blob Storage account ([Blob]).
//
// All emulators start in the same way. An emulator opens its engine, listens, prints one
// line with its address and key to Out, logs the record "ready", and serves until the
// context ends. Unless it requires a secret key, it refuses an address that other machines
// can reach. In addition to the protocol of its engine, it answers GET /healthz.
//
// The package is internal to the command messagehub, which converts flags to options and
// errors to exit statuses. The errors of the package therefore name the command's flags.
package emulator
