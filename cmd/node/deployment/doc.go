// Package deployment lists everything that a hub needs on Azure: the Cosmos
// database and its containers, the Service Bus queues, the blob containers, the
// identities, and the roles of each identity, each with the smallest possible
// scope.
//
// messagehub provision, the templates below deploy, and the queues of an
// embedded bus are all derived from this table. A hub needs only what
// [NewTable] returns for its configuration, and every identity uses all of its
// rights.
//
// The package makes no requests. Package node creates and compares resources,
// and package azuretemplate writes templates. Other packages define the
// properties of the Cosmos containers; this package only lists the containers.
package deployment
