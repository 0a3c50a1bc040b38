// Package deployment is the table of what Azure must have for a hub: the database and the containers
// of Cosmos, the queues of Service Bus, the containers of Blob Storage, the identities, and the role
// that each identity needs, with the smallest scope that the role can have.
//
// It is the one source of messagehub provision, of the templates below deploy, and of the queues of
// an embedded bus. It promises that a hub with a configuration works on exactly what [NewTable] returns for
// it, and that no identity has a right which it does not use.
//
// It makes no request and opens nothing: package node creates and compares, and how a template is
// written is for package azuretemplate. The containers are described by the adapters that use them;
// here they are only listed.
package deployment
