// Package hubclient is the HTTP client of the command: requests, problems, sending with
// repetitions, and the check of an operator.
//
// It is internal to the command messagehub. So its errors name the flags of that command, and
// they are complete sentences for a person.
package hubclient
