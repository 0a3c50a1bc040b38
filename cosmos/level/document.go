package level

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Document is the kind of the document of this package.
var Document = client.DocumentKind{Name: "level", Format: 1}

const (
	containerName = "catalog"
	documentKey   = "|level" // no recipient has this id
	documentID    = "level"
)

// A levelDocument stores the level of a store, and the nodes that work on the store.
type levelDocument struct {
	ID           string                `json:"id"`
	PartitionKey string                `json:"partitionKey"`
	Kind         string                `json:"kind"`
	WriteID      string                `json:"writeId"` // id of the last write other than a beat
	Level        int                   `json:"level"`
	Announced    int                   `json:"announced,omitempty"`
	Nodes        map[string]storedNode `json:"nodes"` // nodes by id
	Step         *stepPosition         `json:"step,omitempty"`
	History      []Change              `json:"history"`
	client.Document
}

// A storedNode is the entry of a node in the document.
type storedNode struct {
	Version string                `json:"version"`
	Host    string                `json:"host,omitempty"`
	Level   int                   `json:"level"` // highest level that the node knows
	Beat    int64                 `json:"beat"`
	Unknown client.UnknownMembers `json:",embed"`
}

// A stepPosition names the unfinished step, and the position at which it continues.
type stepPosition struct {
	Name     string                `json:"name"`
	Position string                `json:"position,omitempty"`
	Unknown  client.UnknownMembers `json:",embed"`
}

// A Change is an entry of the history.
type Change struct {
	What    string                `json:"what"` // created, announced, activated or taken back
	Level   int                   `json:"level"`
	At      time.Time             `json:"at"`
	Version string                `json:"version"`      // version of the program
	By      string                `json:"by,omitempty"` // name of the operator
	Unknown client.UnknownMembers `json:",embed"`
}

// DocumentKind returns the kind of the document.
func (*levelDocument) DocumentKind() client.DocumentKind { return Document }

// Validate returns an error for values that no version writes.
func (d *levelDocument) Validate() error {
	if d.Level < 1 || d.Announced != 0 && d.Announced != d.Level+1 {
		return fmt.Errorf("want a level above 0 and at most the next one announced, got level %d and %d", d.Level, d.Announced)
	}
	for id := range d.Nodes {
		if strings.ContainsAny(id, `'"/~\`) { // the id becomes a part of paths and conditions
			return fmt.Errorf("want the id of a node, got %q", domain.Shorten(id))
		}
	}
	return nil
}

// requiredLevel returns the level that a node must know to work on the store.
func (d *levelDocument) requiredLevel() int { return max(d.Level, d.Announced) }

// versionOf returns the version of the program that announced or activated a level, or "" if the
// history has no entry for the level.
func (d *levelDocument) versionOf(level int) string {
	for _, c := range slices.Backward(d.History) {
		if c.Level == level && c.What != takenBack {
			return c.Version
		}
	}
	return ""
}
