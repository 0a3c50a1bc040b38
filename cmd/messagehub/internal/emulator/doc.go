// Package emulator starts one embedded engine alone, for any client: a Cosmos DB account
// ([Cosmos]), a Service Bus namespace ([ServiceBus]) or a Blob Storage account ([Blob]).
//
// The three start in the same steps. Each refuses an address that other machines reach
// while anyone could use it, opens its engine, listens, prints one line with its address
// and key to Out, logs the record "ready", and serves until the context ends. In addition
// to the protocol of its engine it answers GET /healthz.
//
// The package is internal to the command messagehub, which turns flags into options and
// errors into exit statuses. So its errors name the flags of that command.
package emulator
