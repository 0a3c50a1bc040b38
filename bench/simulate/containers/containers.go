// Package containers lists the Cosmos containers in which hubs store documents, each with the package that checks its
// documents.
//
// All observers of a simulation use this list: package steps, which names the requests, package invariants, the
// corruptor and package explorer. If a hub uses a container that is not listed, the simulation fails. So every stored
// document is checked. A new container needs an entry here and a checker in the simulation.
package containers

import (
	"fmt"
	"net/http"
	"strings"
)

// A Checker names the package that checks the commits to a container.
type Checker string

// The packages that check commits.
const (
	Invariants     Checker = "invariants"      // package bench/simulate/invariants
	InvariantsPush Checker = "invariants/push" // package bench/simulate/invariants/push

	InvariantsObjects Checker = "invariants/objects" // package bench/simulate/invariants/objects
)

// A Container is a container in which hubs store documents.
type Container struct {
	Name         string
	PartitionKey string // the field with the partition key
	Checker      Checker
}

// The containers of the pull side.
const (
	Catalog = "catalog" // heads and the entries of drawers
	Cabinet = "cabinet" // drawers and pages
	Bundles = "bundles" // gates, bundles, notices and records
)

// The containers of the push side.
const (
	Streams = "streams" // published messages
	Cursors = "cursors" // cursors of receivers, failed deliveries, nodes
)

// Objects is the container of object events.
const Objects = "objects"

// All returns every container, always in the same order.
func All() []Container {
	return []Container{
		{Catalog, "partitionKey", Invariants},
		{Cabinet, "partitionKey", Invariants},
		{Bundles, "recipient", Invariants},
		{Streams, "partitionKey", InvariantsPush},
		{Cursors, "partitionKey", InvariantsPush},
		{Objects, "partitionKey", InvariantsObjects},
	}
}

// An UnknownError reports a container that is not listed.
type UnknownError struct{ Container string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("the simulation does not know the container %q: add it to bench/simulate/containers, with the judge of its documents", e.Container)
}

// Find returns the container with the given name, or an *UnknownError.
func Find(name string) (Container, error) {
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
	}
	return Container{}, &UnknownError{name}
}

// Check returns an *UnknownError if req uses a container that is not listed.
func Check(req *http.Request) error {
	name, _ := NameOf(req)
	if name == "" {
		return nil
	}
	_, err := Find(name)
	return err
}

// NameOf returns the name of the container in the path of req, or "", and the rest of the path after it.
func NameOf(req *http.Request) (name, rest string) {
	_, after, _ := strings.Cut(req.URL.Path, "/colls/")
	name, rest, _ = strings.Cut(after, "/")
	return name, rest
}
