package steps

import (
	"net/http"
	"strings"
)

// objectsName names a request about documents of the ledger of objects.
func (r *request) objectsName(isRead bool) Name {
	switch ofBucket := strings.HasPrefix(r.key, "bucket|"); {
	case ofBucket && isRead:
		return ReadShards
	case ofBucket:
		return StoreShards
	case isRead && r.has(`"-c.`), isRead && r.has("'-c."):
		return ReadChanges
	case r.method == http.MethodPatch:
		return Mark
	case r.method == http.MethodDelete && strings.HasPrefix(r.id, "-c."):
		return RemoveChange
	case isRead && r.has("c.object ="), isRead && r.has(`"-`):
		return ReadSpilled // also by the ids of spilled rows, which begin with a dash
	case isRead:
		return ReadObjects
	case r.has(`"kind":"change"`):
		return Change
	case r.has(`"kind":"row"`):
		return Spill
	case r.has(`"ifMatch":`):
		return UpdateObjects
	}
	return CreateObjects
}
