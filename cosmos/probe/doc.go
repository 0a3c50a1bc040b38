// Package probe tests the rights of a credential in a database, one by one, on a document that it
// creates.
//
// The document is in the container catalog, in a partition that no recipient can have, like the
// document of package level. It has no content. A check of mailboxes does not read it. [Probe.Run]
// creates it, reads, replaces and deletes it, for about 30 request units. If the program dies
// meanwhile, or the credential may not delete, the document stays; the next run that may delete
// removes the documents of runs that are older than a minute by the clock of the account. Concurrent
// runs use different documents.
//
// Every right is tested, whether the previous ones are granted or not. If the document does not
// exist, an account that grants the right answers just that, and an account that does not grant it
// refuses the request.
package probe
