package api

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/inspect"
)

// requireDeliveries refuses requests if the hub has no store for deliveries.
func (s *Server) requireDeliveries(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Deliveries == nil {
			return &problemError{problem: notProvisioned}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

func (s *Server) listDeliveries(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, "page", "size", "state", "subscription")
	if err != nil {
		return err
	}
	if !values.Has("subscription") {
		return refuse(invalid, "subscription: missing; send the id of one as a query parameter.")
	}
	q := inspect.Query{State: inspect.State(values.Get("state")), Page: values.Get("page")}
	if q.Subscription, err = domain.ParseSubscriptionID(values.Get("subscription")); err != nil {
		return err
	}
	if values.Has("size") {
		if q.Size, err = strconv.Atoi(values.Get("size")); err != nil || q.Size == 0 {
			return refuse(invalid, "size: want 1 to %d, got %q.", inspect.MaxPage, domain.Shorten(values.Get("size")))
		}
	}
	recordOf(r.Context()).note(slog.String("subscription", q.Subscription.String()))
	page, err := s.opts.Deliveries.List(r.Context(), readerOf(r.Context()), q)
	if err != nil {
		return err
	}
	answer := struct {
		Deliveries []messageDeliveryDocument `json:"deliveries"`
		Next       string                    `json:"next,omitempty"`
		Expired    []expiryDocument          `json:"expired,omitempty"`
	}{make([]messageDeliveryDocument, len(page.Deliveries)), page.Next, documentsOfExpiries(page.Expired)}
	for i := range page.Deliveries {
		answer.Deliveries[i] = documentOfListedDelivery(&page.Deliveries[i])
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (s *Server) getDelivery(w http.ResponseWriter, r *http.Request) error {
	id, err := deliveryID(r)
	if err != nil {
		return err
	}
	found, err := s.opts.Deliveries.Get(r.Context(), readerOf(r.Context()), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, documentOfMessageDelivery(found))
	return nil
}

func (s *Server) explainDelivery(w http.ResponseWriter, r *http.Request) error {
	id, err := deliveryID(r)
	if err != nil {
		return err
	}
	found, err := s.opts.Deliveries.Explain(r.Context(), readerOf(r.Context()), id)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, documentOfExplanation(found))
	return nil
}

// deliveryID returns the delivery id in the path of a request. It fails if the request has query
// parameters.
func deliveryID(r *http.Request) (domain.DeliveryID, error) {
	if _, err := query.Parse(r); err != nil {
		return domain.DeliveryID{}, err
	}
	id, err := domain.ParseDeliveryID(pathparam.Value(r, "deliveryId"))
	if err == nil {
		recordOf(r.Context()).note(slog.String("delivery", id.String()))
	}
	return id, err
}

// testSubscription calls the receiver of a subscription once, as a test.
func (s *Server) testSubscription(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := subscriptionID(r)
	if err != nil {
		return err
	}
	result, err := s.opts.Deliveries.Test(r.Context(), inspect.Reader{Actor: actorOf(r.Context())}, id)
	if limit, ok := errors.AsType[*inspect.TestLimitError](err); ok {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(limit.Pause.Seconds()), 'f', -1, 64))
		return &problemError{problem: tooManyTests, cause: err, detail: "Nothing was called: " + limit.Error() + "."}
	}
	if err != nil {
		return err
	}
	recordOf(r.Context()).note(slog.Int("answer", result.Answer.Status))
	writeJSON(w, http.StatusOK, documentOfTest(result))
	return nil
}
