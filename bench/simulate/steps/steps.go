// Package steps names the requests that the hub makes to Cosmos DB by their purpose: reserve, commit, open bundle,
// and so on, as the protocols in package cosmos call them.
//
// A request does not contain its purpose; the package derives it from the documents that the request reads or
// writes. So the hub needs no code for this, and a simulation or a kill switch between a hub and its store can
// identify each step.
//
// The text of a name is part of the traces and decides the order of steps in a simulation. So a changed text changes
// the simulation of a seed.
package steps

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/containers"
)

// A Name is the purpose of a request.
type Name string

// The writes of the protocols.
const (
	Reserve     Name = "reserve"      // announces the writes of a Save, and sometimes commits the previous Save
	Want        Name = "want"         // asks the owner of an intent to release it
	Insert      Name = "insert"       // writes pages
	Flush       Name = "flush"        // writes the page of a tail
	Count       Name = "count"        // updates the counts of drawers, or creates drawers
	Point       Name = "point"        // writes the catalog entries of a Save
	Commit      Name = "commit"       // completes a Save, and is the only step of a small Save; also closes a drawer, or removes cabinets in a sweep
	Claim       Name = "claim"        // claims the intent of a different process for a rollback, or announces that drawers below a gate will be sealed
	Bar         Name = "bar"          // seals a drawer in a rollback, and creates the drawer empty if it does not exist
	Clear       Name = "clear"        // completes a rollback
	Seal        Name = "seal"         // seals a drawer
	LeaveFilter Name = "leave filter" // writes the id filter of a drawer, of several drawers, or of a recipient
	Mend        Name = "mend"         // repairs or deletes a catalog entry
	OpenBundle  Name = "open bundle"
	Prove       Name = "prove" // writes a document without a change to verify that a read was not stale; or deletes a gate's references to removed cabinets
	Dequeue     Name = "dequeue"
	Answer      Name = "answer"       // stores a domain's content, or the failure to produce it
	MarkGone    Name = "mark content" // marks content as deleted
	Position    Name = "position"
	Repoint     Name = "repoint"   // updates the catalog entries after a Dequeue
	Deliver     Name = "deliver"   // removes a delivered notice from the outbox
	Order       Name = "order"     // executes an operator's order
	Retain      Name = "retain"    // raises milestones and floor; if the floor passes the drawer that is being filled, the step is a Commit
	TakeTurn    Name = "take turn" // claims the right to sweep, or to check for changes, for one node
	Remove      Name = "remove"    // removes documents in a sweep
	Expire      Name = "expire"    // in a sweep, sets a time to live on bundles that were closed while the retention was unlimited
	Adopt       Name = "adopt"     // stores the groups of the account
	Survey      Name = "survey"    // writes the lease and the lines of the survey of mailboxes
)

// The writes of the push side.
const (
	Append       Name = "append"        // appends messages to a stream
	OpenSegment  Name = "open segment"  // opens a segment of a stream
	CreateCursor Name = "create cursor" // creates a cursor and its entry in the shard
	Settle       Name = "settle cursor" // saves a cursor; also verifies that a read of the cursor was not stale
	ListRetry    Name = "list retry"    // stores in the shard the time at which the first retry is due
	Retire       Name = "retire cursor" // retires the cursor of a deleted receiver
	Unlist       Name = "unlist cursor" // removes the cursor's entry from the shard
	Beat         Name = "beat"          // reports that a node is alive
	Assign       Name = "assign shards"
	Leave        Name = "leave" // reports that a node stops
	Define       Name = "define"
	Cancel       Name = "cancel deliveries" // cancels the deliveries of a deleted receiver
)

// The writes for watches.
const (
	Mark         Name = "mark watched"  // marks a client's document, a bundle or an object as watched
	RemoveBundle Name = "remove bundle" // removes a watched bundle and stores the notice, in a sweep
	Change       Name = "change"        // changes a watched document or object and stores the change
	PutDocument  Name = "put document"  // writes a client's document that is not watched
	RemoveChange Name = "remove change"
	StoreWatch   Name = "store watch"
	DeleteWatch  Name = "delete watch"
)

// The writes of the ledger of objects.
const (
	StoreShards   Name = "store shards"   // stores the number of shards of a bucket
	CreateObjects Name = "create objects" // stores a batch of new objects
	UpdateObjects Name = "update objects" // updates a batch of objects; some of the objects may be new
	Spill         Name = "spill"          // stores objects and their spilled rows
	Amend         Name = "amend"          // changes the attributes that users set; also updates an object that has attributes set by users
	Forget        Name = "forget"         // deletes rows in a sweep; also updates an object from which rows were deleted
	MoveSweep     Name = "move sweep"     // begins a sweep, or saves its position
	StartJob      Name = "start job"
	ClaimJob      Name = "claim job" // claims a job without a cursor
	MoveJob       Name = "move job"  // saves the cursor of a job, or claims a job with a cursor
	EndJob        Name = "end job"
)

// The reads of the ledger of objects.
const (
	ReadShards  Name = "read shards"
	ReadObjects Name = "read objects"
	ReadSpilled Name = "read spilled rows"
	ReadChanges Name = "read changes" // reads the changes of watched objects
	ReadJobs    Name = "read jobs"
	ReadSweep   Name = "read sweep"
)

// The reads of the push side.
const (
	ReadStream  Name = "read stream"
	ReadCursor  Name = "read cursor"
	ReadRetries Name = "read retries" // reads retries or dead letters
	ReadShard   Name = "read shard"
	ReadNodes   Name = "read nodes"

	ReadDocument Name = "read document" // reads a client's document
)

// The reads.
const (
	ReadHead    Name = "read head"
	ReadGates   Name = "read gates"
	ReadBundle  Name = "read bundle"
	ReadEntry   Name = "read entry"
	ReadDrawers Name = "read drawers"
	ReadPages   Name = "read pages"
	ReadOther   Name = "read"
	ReadSurvey  Name = "read survey"
	ReadFeed    Name = "read changes of container"
)

// Other is a request that belongs to no known protocol, for example a request for the account or a container.
const Other Name = "other"

// IsWrite reports whether the step writes documents.
func (n Name) IsWrite() bool { return n != Other && !strings.HasPrefix(string(n), "read") }

// NameOf returns the purpose of req. It reads the body of req and restores it.
func NameOf(req *http.Request) Name {
	container, rest := containers.NameOf(req)
	id, isItem := strings.CutPrefix(rest, "docs")
	if !isItem {
		return Other
	}
	id = strings.TrimPrefix(id, "/")
	r := parsedRequest{method: req.Method, container: container, id: id, body: bodyOf(req), key: keyOf(req)}
	r.isQuery = IsQuery(req)
	r.isBatch = hasTrueHeader(req, "x-ms-cosmos-is-batch-request")
	r.isConditional = req.Header.Get("If-Match") != ""
	if req.Header.Get("A-IM") != "" {
		return ReadFeed
	}
	return r.name()
}

// IsQuery reports whether req is a query.
func IsQuery(req *http.Request) bool {
	return hasTrueHeader(req, "x-ms-documentdb-query") || hasTrueHeader(req, "x-ms-documentdb-isquery")
}

func hasTrueHeader(req *http.Request, header string) bool {
	return strings.EqualFold(req.Header.Get(header), "true")
}

func keyOf(req *http.Request) string {
	return strings.Trim(req.Header.Get("x-ms-documentdb-partitionkey"), `[]"`)
}

// bodyOf returns the body of req, and restores it.
func bodyOf(req *http.Request) string {
	if req.Body == nil {
		return ""
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		body = nil // reading does not fail, because this process has made the request
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

type parsedRequest struct {
	method, container, id, key, body string
	isQuery, isBatch, isConditional  bool
}

func (r *parsedRequest) has(text string) bool { return strings.Contains(r.body, text) }

// surveyKey is the partition key of the survey of mailboxes.
const surveyKey = "|survey"

func (r *parsedRequest) name() Name {
	isRead := r.method == http.MethodGet || r.isQuery
	switch {
	case r.key == surveyKey && isRead:
		return ReadSurvey
	case r.key == surveyKey:
		return Survey
	}
	switch r.container {
	case containers.Catalog:
		if isRead {
			return r.catalogRead()
		}
		return r.catalogWrite()
	case containers.Cabinet:
		if isRead {
			return r.cabinetRead()
		}
		return r.cabinetWrite()
	case containers.Bundles:
		if isRead {
			return r.bundlesRead()
		}
		return r.bundlesWrite()
	case containers.Streams:
		if isRead {
			return ReadStream
		}
		return r.streamsWrite()
	case containers.Cursors:
		if isRead {
			return r.cursorsRead()
		}
		return r.cursorsWrite()
	case containers.Objects:
		return r.objectsName(isRead)
	}
	return Other
}

// isOfHead reports whether the request is for the partition of a head. The key of this partition is a recipient without
// an origin.
func (r *parsedRequest) isOfHead() bool { return !strings.Contains(r.key, "|") }

func (r *parsedRequest) catalogRead() Name {
	switch {
	case r.id == "head":
		return ReadHead
	case r.isQuery && !r.isOfHead():
		return ReadEntry
	}
	return ReadOther
}

func (r *parsedRequest) catalogWrite() Name {
	if !r.isOfHead() {
		switch {
		case r.key == "|sweep":
			return TakeTurn
		case r.method == http.MethodDelete && !r.isConditional:
			return Remove // a sweep removes an entry without a condition on its content
		case r.isBatch && r.has(`"Create"`):
			return Point
		case r.isBatch:
			return Repoint
		}
		return Mend
	}
	switch {
	case r.method == http.MethodPatch && r.has("/wanted"):
		return Want
	case r.method == http.MethodPatch || r.isBatch:
		return Retain
	case r.method == http.MethodDelete:
		return Remove
	case r.has(`"fingerprints"`):
		return LeaveFilter
	case !r.has(`"cabinets"`):
		return Adopt
	case r.has(`"aborted":true`):
		return Claim
	case r.has(`"intent":`) && r.has(`"wanted":`):
		return Want
	case r.has(`"intent":`):
		return Reserve
	case r.has(`"undone":`):
		return Clear
	}
	return Commit
}

func (r *parsedRequest) cabinetRead() Name {
	if strings.Contains(r.key, "|") {
		return ReadDrawers
	}
	return ReadPages
}

func (r *parsedRequest) cabinetWrite() Name {
	switch isDrawer := strings.Contains(r.key, "|"); {
	case r.method == http.MethodDelete || r.isBatch && r.has(`"Delete"`):
		return Remove
	case r.has(`"fingerprints"`):
		return LeaveFilter
	case !isDrawer && !r.isBatch:
		return Flush
	case !isDrawer:
		return Insert
	case r.has("/position"):
		return Position
	case r.has("/count") && r.has("/sealed"), r.method == http.MethodPost && !r.isBatch && r.has(`"sealed":true`):
		return Bar
	case r.has("/sealed"):
		return Seal
	}
	return Count
}

func (r *parsedRequest) bundlesRead() Name {
	switch {
	case r.isQuery && r.has(`"gate.`):
		return ReadGates
	case r.isQuery:
		return ReadOther
	case strings.HasPrefix(r.id, "gate."):
		return ReadGates
	}
	return ReadBundle
}

func (r *parsedRequest) bundlesWrite() Name {
	switch {
	case r.has(`"kind":"record"`):
		return Order
	case r.method == http.MethodDelete:
		return Deliver
	case r.isBatch && r.has(`"state":"open"`) && r.has(`"Create"`):
		return OpenBundle
	case r.isBatch && r.has(`"dequeued"`):
		return Dequeue
	case r.isBatch && r.has(`"watchers of removal"`):
		return RemoveBundle
	case r.has(`"/gone"`) && !r.has(`"/object"`):
		return MarkGone
	case r.has("/object") || r.has("/trouble"):
		return Answer
	case r.has(`"/watched"`):
		return Mark
	case r.has("/ttl"), r.has("/expires"):
		return Expire
	}
	return Prove
}
