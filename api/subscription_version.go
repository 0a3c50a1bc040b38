package api

import (
	"net/http"

	"github.com/messagehub/messagehub/api/internal/etag"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// writeSubscription responds with a subscription. Its ETag changes when the owner changes a member,
// but not when the state of the deliveries changes.
func writeSubscription(w http.ResponseWriter, status int, s *subscribe.Subscription) {
	setVersion(w, s)
	writeJSON(w, status, documentOfSubscription(s))
}

func setVersion(w http.ResponseWriter, s *subscribe.Subscription) {
	w.Header().Set("ETag", etag.Of(s.Version))
}

// matchOf returns the versions of a subscription that satisfy the conditions of a request.
func matchOf(r *http.Request) subscribe.Match {
	exists, versions := etag.Match(r)
	return subscribe.Match{Exists: exists, Versions: versions}
}
