package steps

import (
	"net/http"
	"strings"
)

// The partition keys in the container objects whose documents are not objects.
const (
	jobsKey  = "jobs"
	sweepKey = "sweep"
)

// objectsName returns the name of a request for documents of the ledger of objects.
func (r *parsedRequest) objectsName(isRead bool) Name {
	switch ofBucket := strings.HasPrefix(r.key, "bucket|"); {
	case r.key == jobsKey:
		return r.jobsName(isRead)
	case r.key == sweepKey && isRead:
		return ReadSweep
	case r.key == sweepKey:
		return MoveSweep
	case ofBucket && (isRead || r.method == http.MethodPatch):
		return ReadShards // a patch without a change is a read that is never stale
	case ofBucket:
		return StoreShards
	case isRead && r.has(`"-c.`), isRead && r.has("'-c."):
		return ReadChanges
	case r.method == http.MethodPatch:
		return Mark
	case r.method == http.MethodDelete && (strings.HasPrefix(r.id, "-c.") || strings.HasPrefix(r.id, "-t.")):
		return RemoveChange
	case isRead && r.has("ORDER BY c.id"):
		return ReadObjects
	case isRead && r.has("c.object ="), isRead && r.has(`"-`):
		return ReadSpilled // includes reads by the id of a spilled row, which begins with a dash
	case isRead:
		return ReadObjects
	case r.has(`"kind":"change"`):
		return Change
	case r.has(`"operationType":"Delete"`) && r.has(`"id":"-t.`) && !r.has(`"operationType":"Create"`):
		return RemoveChange
	case r.has(`"forgottenRows":`), r.has(`"operationType":"Delete"`):
		return Forget
	case r.has(`"kind":"row"`):
		return Spill
	case r.has(`"attributes":`):
		return Amend
	case r.has(`"ifMatch":`):
		return UpdateObjects
	}
	return CreateObjects
}

// jobsName returns the name of a request for jobs.
func (r *parsedRequest) jobsName(isRead bool) Name {
	switch {
	case isRead, r.method == http.MethodPatch:
		return ReadJobs // a patch without a change is a read that is never stale
	case r.has(`"operationType":"Create"`):
		return StartJob
	case r.has(`"ended":`):
		return EndJob
	case r.has(`"cursor":`):
		return MoveJob
	}
	return ClaimJob
}
