// Package receiver is a receiver of calls for people who develop one, or want
// to see what a hub sends. It verifies each call, prints it and answers as
// configured.
//
// It prints texts from unknown senders. So it removes control characters from
// each text, and limits what it reads, keeps and prints.
package receiver
