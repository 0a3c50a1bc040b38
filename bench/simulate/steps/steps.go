// Package steps names the requests that the hub makes of Cosmos by what they are
// for: reserve, commit, open bundle, and so on, as the protocols in package cosmos
// call them.
//
// The hub does not say in a request what it is for, and it need not: what is
// written tells. So the names work on any hub, without anything built into it, and
// whoever stands between a hub and its store (a simulation, a process that is to be
// killed at a certain step) can say where it stands.
package steps

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/containers"
)

// A Name is what a request is for.
type Name string

// The writes of the protocols.
const (
	Reserve     Name = "reserve"      // a Save announces what it will write, and perhaps commits the one before
	Want        Name = "want"         // a process asks the owner of an intent to make way
	Insert      Name = "insert"       // pages
	Flush       Name = "flush"        // the page of a tail
	Count       Name = "count"        // what drawers hold, or the drawers themselves
	Point       Name = "point"        // catalog entries
	Commit      Name = "commit"       // a Save is done; a small one has no other step. A sweep closes a drawer or removes cabinets
	Claim       Name = "claim"        // the intent of another is to be rolled back, or drawers are to be sealed below a gate in front of the head
	Bar         Name = "bar"          // a drawer of a rollback is sealed, created empty if need be
	Clear       Name = "clear"        // a rollback is done
	Seal        Name = "seal"         // a drawer takes no more
	LeaveFilter Name = "leave filter" // the ids of a drawer, of several, or of a recipient
	Mend        Name = "mend"         // a catalog entry is put right, or away
	OpenBundle  Name = "open bundle"
	Prove       Name = "prove" // a write that changes nothing proves what is so; or a gate forgets removed cabinets
	Dequeue     Name = "dequeue"
	Answer      Name = "answer"       // a domain's content is noted, or its failure
	MarkGone    Name = "mark content" // it was deleted
	Position    Name = "position"
	Repoint     Name = "repoint"   // the entries after a Dequeue
	Deliver     Name = "deliver"   // a notice leaves the outbox
	Order       Name = "order"     // of an operator
	Retain      Name = "retain"    // milestones and floor; a floor that takes the drawer being filled is as a commit
	TakeTurn    Name = "take turn" // a node says that it sweeps now, or looks for changes
	Remove      Name = "remove"    // by a sweep
	Expire      Name = "expire"    // by a sweep: bundles that were closed while the retention was unlimited
	Adopt       Name = "adopt"     // the groups of the store
	Survey      Name = "survey"    // who surveys the mailboxes, and their lines
)

// The writes of the push side.
const (
	Append       Name = "append"        // messages to a stream
	OpenSegment  Name = "open segment"  // of a stream
	CreateCursor Name = "create cursor" // or its entry in the shard
	Settle       Name = "settle cursor" // also the proof of a load
	ListRetry    Name = "list retry"    // the entry of the shard says when the first retry is due
	Retire       Name = "retire cursor" // of a receiver that was deleted
	Unlist       Name = "unlist cursor" // the shard has no entry of it any more
	Beat         Name = "beat"          // a node is alive
	Assign       Name = "assign shards"
	Leave        Name = "leave" // a node ends
	Define       Name = "define"
	Cancel       Name = "cancel deliveries" // of a receiver that was deleted
)

// The writes about watches.
const (
	Mark         Name = "mark watched"  // a document of clients, a bundle or an object
	RemoveBundle Name = "remove bundle" // that was watched, by a sweep, and what says so
	Change       Name = "change"        // of a watched document of clients or object, and what says so
	PutDocument  Name = "put document"  // of clients, one that is not watched
	RemoveChange Name = "remove change"
	StoreWatch   Name = "store watch"
	DeleteWatch  Name = "delete watch"
)

// The writes of the ledger of objects.
const (
	StoreShards   Name = "store shards"   // of a bucket
	CreateObjects Name = "create objects" // all of a batch are new
	UpdateObjects Name = "update objects" // new ones may be among them
	Spill         Name = "spill"          // as the two above, with rows that are spilled
	Amend         Name = "amend"          // facts that users keep; or an update of an object that has such
	Forget        Name = "forget"         // rows, by a sweep; or an update of an object that has forgotten some
	MoveSweep     Name = "move sweep"     // a node begins a sweep, or says how far it has come
	StartJob      Name = "start job"
	ClaimJob      Name = "claim job" // one that has no cursor yet
	MoveJob       Name = "move job"  // its cursor; or a claim of one that has a cursor
	EndJob        Name = "end job"
)

// The reads of the ledger of objects.
const (
	ReadShards  Name = "read shards"
	ReadObjects Name = "read objects"
	ReadSpilled Name = "read spilled rows"
	ReadChanges Name = "read changes" // of objects that are watched
	ReadJobs    Name = "read jobs"
	ReadSweep   Name = "read sweep"
)

// The reads of the push side.
const (
	ReadStream  Name = "read stream"
	ReadCursor  Name = "read cursor"
	ReadRetries Name = "read retries" // or dead letters
	ReadShard   Name = "read shard"
	ReadNodes   Name = "read nodes"

	ReadDocument Name = "read document" // of clients
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

// Other is any other request: of the account, of a container, a write that no
// protocol knows.
const Other Name = "other"

// IsWrite reports whether a step changes something.
func (n Name) IsWrite() bool { return n != Other && !strings.HasPrefix(string(n), "read") }

// NameOf returns what req is for. It reads the body and puts it back.
func NameOf(req *http.Request) Name {
	container, rest := containers.NameOf(req)
	id, isItem := strings.CutPrefix(rest, "docs")
	if !isItem {
		return Other
	}
	id = strings.TrimPrefix(id, "/")
	r := request{method: req.Method, container: container, id: id, body: bodyOf(req), key: keyOf(req)}
	r.isQuery = IsQuery(req)
	r.isBatch = hasTrueHeader(req, "x-ms-cosmos-is-batch-request")
	r.isConditional = req.Header.Get("If-Match") != ""
	if req.Header.Get("A-IM") != "" {
		return ReadFeed
	}
	return r.name()
}

// IsQuery reports whether req asks for all documents of which something holds.
func IsQuery(req *http.Request) bool {
	return hasTrueHeader(req, "x-ms-documentdb-query") || hasTrueHeader(req, "x-ms-documentdb-isquery")
}

func hasTrueHeader(req *http.Request, header string) bool {
	return strings.EqualFold(req.Header.Get(header), "true")
}

func keyOf(req *http.Request) string {
	return strings.Trim(req.Header.Get("x-ms-documentdb-partitionkey"), `[]"`)
}

// bodyOf reads the body, and leaves it to be read again.
func bodyOf(req *http.Request) string {
	if req.Body == nil {
		return ""
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		body = nil // the body of a request that is made in this process can be read
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return string(body)
}

type request struct {
	method, container, id, key, body string
	isQuery, isBatch, isConditional  bool
}

func (r *request) has(text string) bool { return strings.Contains(r.body, text) }

// surveyKey is the partition of the survey of mailboxes.
const surveyKey = "|survey"

func (r *request) name() Name {
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

// isOfHead: the partition of a head is named after the recipient alone, those of
// entries after the origin as well.
func (r *request) isOfHead() bool { return !strings.Contains(r.key, "|") }

func (r *request) catalogRead() Name {
	switch {
	case r.id == "head":
		return ReadHead
	case r.isQuery && !r.isOfHead():
		return ReadEntry
	}
	return ReadOther
}

func (r *request) catalogWrite() Name {
	if !r.isOfHead() {
		switch {
		case r.key == "|sweep":
			return TakeTurn
		case r.method == http.MethodDelete && !r.isConditional:
			return Remove // a sweep takes an entry away whatever it says
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

func (r *request) cabinetRead() Name {
	if strings.Contains(r.key, "|") {
		return ReadDrawers
	}
	return ReadPages
}

func (r *request) cabinetWrite() Name {
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

func (r *request) bundlesRead() Name {
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

func (r *request) bundlesWrite() Name {
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
