package steps

import (
	"net/http"
	"strings"
)

func (r *parsedRequest) streamsWrite() Name {
	switch {
	case r.method == http.MethodPatch:
		return ReadStream // the write changes nothing; it checks for an id where reads may be stale
	case r.method == http.MethodPost && !r.isBatch && r.has(`"priorities":`) && !r.has(`"runs":`):
		return OpenSegment
	}
	return Append
}

// The partition keys in the container cursors whose documents are not cursors.
const (
	shardPrefix = "|shard|"
	nodesKey    = "|nodes"

	resourcePrefix = "|resource|"
	watchesPrefix  = "|watches|"
	turnsKey       = "|turns"
)

func (r *parsedRequest) cursorsRead() Name {
	switch {
	case strings.HasPrefix(r.key, shardPrefix):
		return ReadShard
	case r.key == nodesKey:
		return ReadNodes
	case strings.HasPrefix(r.key, resourcePrefix):
		return ReadDocument
	case strings.HasPrefix(r.key, watchesPrefix), r.key == turnsKey:
		return ReadOther
	case r.isQuery:
		return ReadRetries
	case r.id == "cursor":
		return ReadCursor
	}
	return ReadOther
}

func (r *parsedRequest) cursorsWrite() Name {
	switch isEntry := strings.HasPrefix(r.key, shardPrefix); {
	case r.key == nodesKey && r.method == http.MethodDelete:
		return Leave
	case r.key == nodesKey && r.has(`"owners":`):
		return Assign
	case r.key == nodesKey:
		return Beat
	case isEntry && r.method == http.MethodDelete:
		return Unlist
	case isEntry && r.method == http.MethodPatch && r.has(`"/stream"`):
		return CreateCursor
	case isEntry && r.method == http.MethodPatch:
		return ListRetry
	case isEntry || r.method == http.MethodPost && !r.isBatch && r.has(`"kind":"cursor"`):
		return CreateCursor
	case strings.HasPrefix(r.key, resourcePrefix):
		return r.documentWrite()
	case r.key == turnsKey:
		return TakeTurn
	case strings.HasPrefix(r.key, watchesPrefix) && r.method == http.MethodDelete:
		return DeleteWatch
	case strings.HasPrefix(r.key, watchesPrefix):
		return StoreWatch
	case r.has(`"cancelled":`) && !r.has(`"retired":true`):
		return Cancel
	case r.isBatch && r.has(`"retired":true`):
		return Retire
	case r.isBatch || r.has(`"kind":"cursor"`):
		return Settle
	}
	return Define
}

// documentWrite returns the name of a write of a client's document, or of the change of a client's document.
func (r *parsedRequest) documentWrite() Name {
	switch {
	case r.method == http.MethodDelete && strings.HasPrefix(r.id, "|change|"):
		return RemoveChange
	case r.method == http.MethodPatch && !r.has(`"/watched"`):
		return ReadDocument // the write changes nothing; it checks that the document does not exist
	case r.isBatch:
		return Change
	case r.method == http.MethodPatch, r.has(`"absent":true`):
		return Mark
	}
	return PutDocument
}
