// Package receiver is a receiver of calls for people who develop one, or want to see what a hub
// sends. It verifies each call, prints it and answers as it was asked to.
//
// It prints what a stranger may have sent. So each text is freed of control characters, and what
// it reads, keeps and prints is bounded.
package receiver
