// Package containers lists the Cosmos containers in which hubs store documents, each with
// the package that judges its documents.
//
// All observers of a simulation work from this list: the names of requests (package steps),
// the invariants (package invariants), what a corruptor finds and damages, and the small worlds.
// A hub that uses a container which is not listed fails the run, so that no document is
// stored unseen. Whoever adds a container adds an entry here, and gives the simulation the
// judge that the entry names.
package containers

import (
	"fmt"
	"net/http"
	"strings"
)

// A Judge names the package that compares the commits of containers with their rules.
type Judge string

// The judges.
const (
	Invariants     Judge = "invariants"      // package bench/simulate/invariants
	InvariantsPush Judge = "invariants/push" // package bench/simulate/invariants/push

	InvariantsObjects Judge = "invariants/objects" // package bench/simulate/invariants/objects
)

// A Container is one in which hubs store documents.
type Container struct {
	Name         string
	PartitionKey string // the field by which its documents are partitioned
	Judge        Judge
}

// The containers of the drawers' repository.
const (
	Catalog = "catalog" // heads and the entries of drawers
	Cabinet = "cabinet" // drawers and pages
	Bundles = "bundles" // gates, bundles, notices and records
)

// The containers of the push side.
const (
	Streams = "streams" // what was published
	Cursors = "cursors" // how far each receiver has come, what failed, nodes
)

// Objects is the container of what stores report about their objects.
const Objects = "objects"

// All returns every container, in an order that stays.
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

// Find returns the container with a name, or an *UnknownError.
func Find(name string) (Container, error) {
	for _, c := range All() {
		if c.Name == name {
			return c, nil
		}
	}
	return Container{}, &UnknownError{name}
}

// Check returns an *UnknownError if req is about a container that is not listed.
func Check(req *http.Request) error {
	name, _ := NameOf(req)
	if name == "" {
		return nil
	}
	_, err := Find(name)
	return err
}

// NameOf returns the name of the container that req is about, "" if it is about none, and what
// its path names within that.
func NameOf(req *http.Request) (name, rest string) {
	_, after, _ := strings.Cut(req.URL.Path, "/colls/")
	name, rest, _ = strings.Cut(after, "/")
	return name, rest
}
