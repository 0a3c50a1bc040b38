// Package hubclient is the HTTP client of the command: the public client
// (api/hubclient) with the requests of operators, owners of subscriptions and
// watchers, and with errors for a person.
//
// It is internal to the command messagehub. So its errors name the flags of
// that command, and they are complete sentences. Only [Poster] repeats requests,
// and it reports each repetition.
package hubclient
