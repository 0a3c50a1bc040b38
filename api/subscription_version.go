package api

import (
	"net/http"

	"github.com/messagehub/messagehub/api/internal/etag"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// writeSubscription answers with a subscription. Its ETag changes with what the
// owner may change, and not with the state of its calls.
func writeSubscription(w http.ResponseWriter, status int, s *subscribe.Subscription) {
	setVersion(w, s)
	writeJSON(w, status, documentOfSubscription(s))
}

func setVersion(w http.ResponseWriter, s *subscribe.Subscription) {
	w.Header().Set("ETag", etag.Of(s.Version))
}

// matchOf returns which versions of a subscription a request is for.
func matchOf(r *http.Request) subscribe.Match {
	exists, versions := etag.Match(r)
	return subscribe.Match{Exists: exists, Versions: versions}
}
