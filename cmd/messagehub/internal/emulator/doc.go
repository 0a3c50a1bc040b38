// Package emulator starts one embedded engine without a hub, for any client: a Cosmos DB account
// ([Cosmos]), a Service Bus namespace ([ServiceBus]) or a Blob Storage account ([Blob]).
//
// All emulators start in the same steps. An emulator refuses an address that other
// machines can reach unless it requires a secret key, opens its engine, listens, prints
// one line with its address and key to Out, logs the record "ready", and serves until the
// context ends. In addition to the protocol of its engine it answers GET /healthz.
//
// The package is internal to the command messagehub, which turns flags into options and
// errors into exit statuses. So the errors of the package name flags of that command.
package emulator
