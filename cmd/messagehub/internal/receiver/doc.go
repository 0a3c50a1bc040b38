// Package receiver is a receiver of calls for developers of receivers. It verifies
// each call of a hub, prints the call, and answers as configured.
//
// The texts in a call may come from an attacker. So the receiver removes control
// characters from each text, and limits the size of what it reads, stores and
// prints.
package receiver
