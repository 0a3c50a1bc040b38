package api

import (
	"net/http"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// A rotatedDocument contains a secret that the hub has generated. No other response contains a
// secret.
type rotatedDocument struct {
	subscriptionDocument
	Secret string `json:"hmac_secret_key,omitempty"`
}

// rotateSubscription replaces the secret of a subscription.
func (s *Server) rotateSubscription(w http.ResponseWriter, r *http.Request) error {
	id, err := subscriptionID(r)
	if err != nil {
		return err
	}
	wanted, err := readSecret(w, r)
	if err != nil {
		return err
	}
	found, made, err := s.opts.Subscriptions.Rotate(r.Context(), actorOf(r.Context()), id, wanted, matchOf(r))
	if err != nil {
		return asSubscriptionProblem(r.Context(), err)
	}
	setVersion(w, found)
	writeJSON(w, http.StatusOK, rotatedDocument{documentOfSubscription(found), made})
	return nil
}

// readSecret reads the secret from the body of a request. It returns nil for an empty body.
func readSecret(w http.ResponseWriter, r *http.Request) (*string, error) {
	if r.ContentLength == 0 {
		_, err := query.Parse(r)
		return nil, err
	}
	secret := ""
	f := jsonFields{"hmac_secret_key": &secret}
	return &secret, f.readFields(w, r, 8*subscribe.MaxSecret, "hmac_secret_key")
}
