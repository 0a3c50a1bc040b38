// Package probe tests the rights of a credential in a database, one by one, on a document that it
// creates.
//
// The document is in the container catalog, in a partition that no recipient can have, like the
// document of package level. It has no content, and a check of mailboxes does not read it. [Probe.Run]
// creates, reads, replaces and deletes the document, for about 30 request units. If the program dies
// during the run, or the credential may not delete, the document remains. A later run that may delete
// removes documents that are older than a minute by the clock of the account. Concurrent runs use
// different documents.
//
// A right is tested even if previous rights are not granted. The document may then not exist: an
// account that grants the right replies that the document does not exist, and an account that does not
// grant the right refuses the request.
package probe
