// Package receiver is a webhook receiver for developers. It verifies each call
// of a hub, prints the call, and answers as configured.
//
// The texts in a call may come from an attacker. The receiver therefore removes
// control characters from each text, and limits the size of everything that it
// reads, stores and prints.
package receiver
