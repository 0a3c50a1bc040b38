package push

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// The kinds of documents of nodes. All of these documents are in one partition.
var (
	nodeDocument       = client.DocumentKind{Name: "node", Format: 1}
	assignmentDocument = client.DocumentKind{Name: "assignment", Format: 1}
)

const (
	nodesKey     = "|nodes"
	assignmentID = "assignment"
)

func nodeID(incarnation string) string { return "node|" + incarnation }

// A nodeDoc stores either a repository.Node or a repository.Assignment. One type represents these
// documents because one query reads them.
type nodeDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`

	// The members of a document of a node.
	Incarnation string   `json:"incarnation,omitempty"`
	Beat        int64    `json:"beat,omitempty"`
	Signals     []string `json:"signals,omitempty"`
	Signalled   int64    `json:"signalled,omitempty"`
	Awaits      []byte   `json:"awaits,omitempty"`
	TTL         int64    `json:"ttl,omitempty"` // seconds

	// The members of the assignment document.
	WriteID string            `json:"writeId,omitempty"`
	Version int64             `json:"version,omitempty"`
	Owners  map[string]string `json:"owners,omitempty"` // for each incarnation, its shards as a bit set of 16 hexadecimal digits
	client.Document

	node       repository.Node       // parsed
	assignment repository.Assignment // parsed
}

func (d *nodeDoc) DocumentKind() client.DocumentKind {
	if d.ID == assignmentID {
		return assignmentDocument
	}
	return nodeDocument
}

// Validate parses a node or assignment document that was read.
func (d *nodeDoc) Validate() error {
	if d.ID == assignmentID {
		return d.parseAssignment()
	}
	return d.parseNode()
}

func makeNodeDoc(n *repository.Node) *nodeDoc {
	return &nodeDoc{
		ID: nodeID(n.Incarnation), PartitionKey: nodesKey, Kind: nodeDocument.Name,
		Incarnation: n.Incarnation, Beat: n.Beat, Signals: signalTexts(n.Signals), Signalled: n.Signalled, Awaits: n.Awaits,
		TTL: ceilSeconds(repository.NodeRetention),
	}
}

func (d *nodeDoc) parseNode() error {
	if d.ID != nodeID(d.Incarnation) || d.Beat < 1 {
		return fmt.Errorf("want a beat of the node in the id, got %d of %q", d.Beat, domain.Shorten(d.Incarnation))
	}
	var p documentParser
	d.node = repository.Node{Incarnation: d.Incarnation, Beat: d.Beat, Signals: parseAll(&p, d.Signals, parseSignal), Signalled: d.Signalled, Awaits: d.Awaits}
	return p.err
}

// signalTexts formats each signal as the stream, a space and the cursor.
func signalTexts(signals []repository.Signal) []string {
	texts := []string{} // not nil, so that a patch without signals stores an empty list
	for _, s := range signals {
		text := s.Cursor.String()
		if s.Stream != (domain.StreamName{}) {
			text = s.Stream.String() + " " + text
		} else {
			text = " " + text
		}
		texts = append(texts, text)
	}
	return texts
}

func parseSignal(text string) (s repository.Signal, err error) {
	stream, cursor, found := strings.Cut(text, " ")
	if !found || text == " " {
		return s, fmt.Errorf("signal: want a stream, a space and a cursor, got %q", domain.Shorten(text))
	}
	if stream != "" {
		s.Stream, err = domain.ParseStreamName(stream)
	}
	if cursor != "" && err == nil {
		s.Cursor, err = domain.ParseCursorID(cursor)
	}
	return s, err
}

func makeAssignmentDoc(a *repository.Assignment, writeID string) *nodeDoc {
	masks := make(map[string]uint64)
	for shard, owner := range a.Owners {
		if owner != "" {
			masks[owner] |= 1 << shard
		}
	}
	d := &nodeDoc{
		ID: assignmentID, PartitionKey: nodesKey, Kind: assignmentDocument.Name,
		WriteID: writeID, Version: a.Version + 1, Owners: make(map[string]string),
	}
	for owner, mask := range masks {
		d.Owners[owner] = fmt.Sprintf("%016x", mask)
	}
	return d
}

func (d *nodeDoc) parseAssignment() error {
	if d.Version < 1 {
		return fmt.Errorf("want a version above 0, got %d", d.Version)
	}
	d.assignment = repository.Assignment{Version: d.Version}
	for owner, text := range d.Owners {
		mask, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			return fmt.Errorf("owner %q: %w", domain.Shorten(owner), err)
		}
		for ; mask != 0; mask &= mask - 1 {
			d.assignment.Owners[bits.TrailingZeros64(mask)] = owner
		}
	}
	return nil
}
