// Package hubclient is the HTTP client of the command messagehub. It extends
// the public client (api/hubclient) with requests of operators, subscription
// owners and watchers, and with errors for a person.
//
// The errors are complete sentences, and name the command's flags. Only
// [Poster] repeats requests, and it reports each repetition.
package hubclient
