// Package probe tests the rights of a credential in a database, one by one, on a document of its own.
//
// The document is in the container catalog, in a partition that no recipient can have, next to that of
// package level. It holds nothing. A check of mailboxes does not read it. [Probe.Run] creates it, reads,
// replaces and deletes it, for about 30 request units. If the program dies meanwhile, or the credential may not delete, the
// document stays; the next run that may delete removes the documents of runs that are older than a
// minute by the clock of the account. Runs at the same time have documents of their own.
//
// Every right is tested whether the ones before are granted or not: an account that grants a right
// answers that a document does not exist, and one that does not grant it refuses the request.
package probe
