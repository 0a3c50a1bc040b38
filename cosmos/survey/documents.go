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
	partition     = "|survey" // no cabinet has this partition key
	stateID       = "state"
)

// A surveyState names the node that surveys, the position up to which the node has read, and the
// documents that contain the lines.
type surveyState struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	WriteID      string `json:"operation"` // id of the last write

	Series string `json:"series"` // id of the log; a new log begins if the state is lost

	Owner string `json:"owner,omitempty"` // id of the process that surveys; "": none
	Beat  int64  `json:"beat"`

	At     time.Time         `json:"at,omitzero"`    // time before which all changes were read; zero until the first walk has ended
	Since  time.Time         `json:"since,omitzero"` // time from which the feeds are read; zero: the walk has not begun
	Tokens map[string]string `json:"tokens"`         // tokens of the feeds, by container
	Walk   *walkPosition     `json:"walk,omitempty"` // position of the walk; nil: the walk has ended

	Recheck *recheckPosition `json:"recheck,omitempty"`

	Snapshot      string `json:"snapshot,omitempty"` // id of the snapshot; "": none
	Parts         int    `json:"parts"`              // number of documents of the snapshot
	SnapshotBytes int    `json:"snapshotBytes"`
	First         int64  `json:"first"` // number of the first document of the log
	Last          int64  `json:"last"`  // number of the last document of the log; First-1 if the log is empty
	LogBytes      int    `json:"logBytes"`
	client.Document

	etag azcore.ETag
}

// A walkPosition is the position at which a walk continues.
type walkPosition struct {
	Query    int                   `json:"query"` // index of the query in the result of Reader.Walk
	Position string                `json:"position,omitempty"`
	Unknown  client.UnknownMembers `json:",embed"`
}

// A recheckPosition is the position at which the comparison of all lines with the store continues.
type recheckPosition struct {
	Began   time.Time             `json:"began"`           // start of the recheck, by the clock of the node that surveyed
	Ended   bool                  `json:"ended,omitempty"` // whether the recheck has ended
	Walk    *walkPosition         `json:"walk,omitempty"`  // position of the queries; nil: all queries have ended, and the recheck reads the remaining documents of lines
	After   string                `json:"after,omitempty"` // recipient of the last line that was compared with its remaining documents
	Unknown client.UnknownMembers `json:",embed"`
}

// DocumentKind returns the kind of the document.
func (*surveyState) DocumentKind() client.DocumentKind { return stateDocument }

// Validate returns an error for values that no version writes.
func (s *surveyState) Validate() error {
	if s.First < 1 || s.Last < s.First-1 || s.Parts < 0 || s.Last-s.First > maxLog || s.Parts > maxParts {
		return fmt.Errorf("want a log of up to %d documents and a snapshot of up to %d, got %d to %d and %d", maxLog, maxParts, s.First, s.Last, s.Parts)
	}
	return nil
}

// clone returns a copy of s that the caller may change and write.
func (s *surveyState) clone() *surveyState {
	c := *s
	c.Tokens = make(map[string]string, len(s.Tokens))
	for container, token := range s.Tokens {
		c.Tokens[container] = token
	}
	return &c
}

// A linesPart stores the lines of several mailboxes.
type linesPart struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Lines        []byte `json:"lines"` // lines as a packer packs them
	client.FormatNumber
}

// DocumentKind returns the kind of the document.
func (*linesPart) DocumentKind() client.DocumentKind { return linesDocument }

func logID(n int64) string { return fmt.Sprintf("log.%012d", n) }

func snapshotID(snapshot string, i int) string { return fmt.Sprintf("snapshot.%s.%05d", snapshot, i) }

func newPart(id string, lines []byte) *linesPart {
	return &linesPart{ID: id, PartitionKey: partition, Lines: lines}
}
