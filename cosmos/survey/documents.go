package survey

import (
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
)

// The kinds of documents of this package.
var (
	stateDocument = client.DocumentKind{Name: "survey", Format: 1}
	linesDocument = client.DocumentKind{Name: "survey-lines", Format: 1}
)

// DocumentKinds returns the kinds of documents that this package stores.
func DocumentKinds() []client.DocumentKind {
	return []client.DocumentKind{stateDocument, linesDocument}
}

const (
	containerName = "cabinet"
	partition     = "|survey" // no cabinet has this key
	stateID       = "state"
)

// A surveyState names the node that surveys, the position up to which it has read, and the documents
// that have the lines.
type surveyState struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	WriteID      string `json:"operation"` // id of the last write

	Series string `json:"series"` // id of the log; if the state is lost, another one begins

	Owner string `json:"owner,omitempty"` // the process that surveys; "": none
	Beat  int64  `json:"beat"`

	At     time.Time         `json:"at,omitzero"`    // the time of the survey; zero: the first walk has not ended
	Since  time.Time         `json:"since,omitzero"` // the time at which feeds begin; zero: the walk has not begun
	Tokens map[string]string `json:"tokens"`         // tokens of the feeds, by container
	Walk   *walkPosition     `json:"walk,omitempty"` // nil: the walk has ended

	Recheck *recheckPosition `json:"recheck,omitempty"`

	Snapshot      string `json:"snapshot,omitempty"` // id; "": none
	Parts         int    `json:"parts"`              // number of documents of the snapshot
	SnapshotBytes int    `json:"snapshotBytes"`
	First         int64  `json:"first"` // the log has the documents from First to Last
	Last          int64  `json:"last"`
	LogBytes      int    `json:"logBytes"`
	client.Document

	etag azcore.ETag
}

// A walkPosition is the position at which a walk continues.
type walkPosition struct {
	Query    int                   `json:"query"` // index of the query in Reader.Walk
	Position string                `json:"position,omitempty"`
	Unknown  client.UnknownMembers `json:",embed"`
}

// A recheckPosition is the position at which the comparison of all lines with the store continues.
type recheckPosition struct {
	Began   time.Time             `json:"began"`           // when the recheck began, by the clock of the node that surveyed
	Ended   bool                  `json:"ended,omitempty"` // the recheck that began at Began has ended
	Walk    *walkPosition         `json:"walk,omitempty"`  // nil: all documents were read, and now lines are compared
	After   string                `json:"after,omitempty"` // the recipient of the last line that was compared
	Unknown client.UnknownMembers `json:",embed"`
}

// DocumentKind returns the kind of the document.
func (*surveyState) DocumentKind() client.DocumentKind { return stateDocument }

// Validate returns an error for values that no version has written.
func (s *surveyState) Validate() error {
	if s.First < 1 || s.Last < s.First-1 || s.Parts < 0 || s.Last-s.First > maxLog || s.Parts > maxParts {
		return fmt.Errorf("want a log of up to %d documents and a snapshot of up to %d, got %d to %d and %d", maxLog, maxParts, s.First, s.Last, s.Parts)
	}
	return nil
}

// clone returns a copy of s that can be changed and written to replace s.
func (s *surveyState) clone() *surveyState {
	c := *s
	c.Tokens = make(map[string]string, len(s.Tokens))
	for container, token := range s.Tokens {
		c.Tokens[container] = token
	}
	return &c
}

// A linesPart is a document with lines.
type linesPart struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Lines        []byte `json:"lines"` // see packLines
	client.FormatNumber
}

// DocumentKind returns the kind of the document.
func (*linesPart) DocumentKind() client.DocumentKind { return linesDocument }

func logID(n int64) string { return fmt.Sprintf("log.%012d", n) }

func snapshotID(snapshot string, i int) string { return fmt.Sprintf("snapshot.%s.%05d", snapshot, i) }

func newPart(id string, lines []byte) *linesPart {
	return &linesPart{ID: id, PartitionKey: partition, Lines: lines}
}
