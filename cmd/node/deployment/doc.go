// Package deployment contains the table of everything that a hub needs on Azure:
// the Cosmos database and its containers, the Service Bus queues, the blob
// containers, the identities, and the roles of each identity, each with the
// smallest possible scope.
//
// messagehub provision, the templates below deploy, and the queues of an
// embedded bus are all derived from this table. A hub works with exactly what
// [NewTable] returns for its configuration, and no identity has a right that it
// does not use.
//
// The package makes no requests. Package node creates and compares resources,
// and package azuretemplate writes templates. The properties of Cosmos
// containers are defined by the packages that use them; this package only lists
// the containers.
package deployment
