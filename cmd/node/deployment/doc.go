// Package deployment is the table of what Azure must have for a hub: the
// database and the containers of Cosmos, the queues of Service Bus, the
// containers of Blob Storage, the identities, and the role that each identity
// needs, with the smallest possible scope.
//
// It is the single source of messagehub provision, of the templates below
// deploy, and of the queues of an embedded bus. A hub with a configuration
// works with exactly what [NewTable] returns for it, and no identity has a
// right that it does not use.
//
// It makes no request and opens nothing: package node creates and compares
// resources, and package azuretemplate writes templates. The adapters that use
// the containers define their properties; here they are only listed.
package deployment
