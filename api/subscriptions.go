package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/subscribe"
)

// requireSubscriptions refuses requests if the hub has no store for subscriptions.
func (s *Server) requireSubscriptions(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Subscriptions == nil {
			return &problemError{problem: notProvisioned}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// A subscriptionDocument is the JSON of a subscription for its owner, without the secret and the
// values of headers. Members that older clients do not know are present only if they are set: a
// client refuses to replace a subscription if this would remove an unknown member.
type subscriptionDocument struct {
	UUID             string                        `json:"uuid"`
	Owner            string                        `json:"owner"`
	Topic            string                        `json:"topic"`
	CallbackURL      string                        `json:"callback_url"`
	Method           string                        `json:"method"`
	Encoding         string                        `json:"encoding"`
	FormFields       map[string]string             `json:"form_fields"`
	PayloadFormField string                        `json:"payload_form_field"`
	HMACKeyID        string                        `json:"hmac_key_id,omitempty"`
	Query            string                        `json:"jmespath_query,omitempty"`
	Attachments      map[string]attachmentDocument `json:"attachments,omitempty"`
	HeaderNames      []string                      `json:"header_names,omitempty"`
	DeliveryMode     string                        `json:"delivery_mode,omitempty"`
	MaxRate          float64                       `json:"max_rate,omitempty"`
	MaxConcurrency   int                           `json:"max_concurrency,omitempty"`
	Ordered          bool                          `json:"ordered,omitempty"`
	Signed           bool                          `json:"signed"`
	Paused           bool                          `json:"paused"`
	Created          time.Time                     `json:"created"`
	PreviousUntil    *time.Time                    `json:"previous_secret_until,omitempty"`
	Delivery         *deliveryDocument             `json:"delivery,omitempty"`
}

type deliveryDocument struct {
	State     string     `json:"state"`
	Until     *time.Time `json:"until,omitempty"`
	Failures  int        `json:"failures"`
	Waiting   int        `json:"waiting"`
	Delivered int64      `json:"delivered"`
	Filtered  int64      `json:"filtered"`
	Dead      int64      `json:"dead"`
	Expired   int64      `json:"expired"`

	Warnings []deliveryWarningDocument `json:"warnings,omitempty"`
}

// A deliveryWarningDocument is the JSON of a warning: a code, and the member that belongs to this
// code.
type deliveryWarningDocument struct {
	Code    string     `json:"code"`
	Since   *time.Time `json:"since,omitempty"`
	Count   int        `json:"count,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	Detail  string     `json:"detail"`
}

type attachmentDocument struct {
	Type       string `json:"type"`
	Expression string `json:"expression"`
}

func documentOfSubscription(s *subscribe.Subscription) subscriptionDocument {
	d := subscriptionDocument{
		UUID: s.ID.String(), Owner: s.Owner.String(), Topic: s.Topic, CallbackURL: s.CallbackURL, Method: s.Method, Encoding: s.Encoding,
		FormFields: s.FormFields, PayloadFormField: s.PayloadFormField, HMACKeyID: s.HMACKeyID, Query: s.Filter,
		HeaderNames: s.HeaderNames, MaxRate: s.MaxRate, MaxConcurrency: s.MaxConcurrency, Ordered: s.IsOrdered,
		Signed: s.IsSigned, Paused: s.IsPaused, Created: s.Created,
	}
	if s.IsSync {
		d.DeliveryMode = syncDelivery
	}
	if d.FormFields == nil {
		d.FormFields = map[string]string{}
	}
	for name, expression := range s.Attachments {
		if d.Attachments == nil {
			d.Attachments = make(map[string]attachmentDocument)
		}
		d.Attachments[name] = attachmentDocument{jmespathType, expression}
	}
	d.PreviousUntil = timeOrNil(s.PreviousUntil)
	d.Delivery = documentOfDelivery(s.Delivery)
	return d
}

func documentOfDelivery(s *subscribe.Delivery) *deliveryDocument {
	if s == nil {
		return nil
	}
	d := &deliveryDocument{
		State: s.State, Until: timeOrNil(s.Until), Failures: s.Failures, Waiting: s.Waiting,
		Delivered: s.Counters.Delivered, Filtered: s.Counters.Filtered, Dead: s.Counters.Errored, Expired: s.Counters.Expired,
	}
	for _, w := range s.Warnings {
		d.Warnings = append(d.Warnings, documentOfWarning(w))
	}
	return d
}

func documentOfWarning(w domain.Warning) deliveryWarningDocument {
	d := deliveryWarningDocument{Code: w.Kind.String()}
	at := w.At.UTC().Format(time.RFC3339)
	switch w.Kind {
	case domain.ReceiverFailing:
		d.Since = timeOrNil(w.At)
		d.Detail = "All calls have failed since " + at + ". Test the receiver, and repair it."
	case domain.LastAttempts:
		d.Count = w.Count
		d.Detail = fmt.Sprintf("Deliveries that have a third of their attempts left, or fewer: %d. They become dead letters if those fail.", w.Count)
	case domain.MessagesExpiring:
		d.Expires = timeOrNil(w.At)
		d.Detail = "The oldest event that waits expires at " + at + ", and is not delivered then. Resume the subscription, or have the receiver accept events sooner."
	}
	return d
}

// timeOrNil returns a pointer to t, or nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// createSubscription handles POST, and also PUT, because PUT creates a subscription in the
// original.
func (s *Server) createSubscription(w http.ResponseWriter, r *http.Request) error {
	draft, err := s.readDraft(w, r)
	if err != nil {
		return err
	}
	created, err := s.opts.Subscriptions.Create(r.Context(), draft)
	if err != nil {
		return asSubscriptionProblem(r.Context(), err)
	}
	recordOf(r.Context()).note(slog.String("subscription", created.ID.String()))
	w.Header().Set("Location", "/v1/subscriptions/"+created.ID.String())
	writeSubscription(w, http.StatusCreated, created)
	return nil
}

func (s *Server) putSubscription(w http.ResponseWriter, r *http.Request) error {
	id, err := subscriptionID(r)
	if err != nil {
		return err
	}
	draft, err := s.readDraft(w, r)
	if err != nil {
		return err
	}
	stored, created, err := s.opts.Subscriptions.Put(r.Context(), id, draft, matchOf(r))
	if err != nil {
		return asSubscriptionProblem(r.Context(), err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", "/v1/subscriptions/"+id.String())
	}
	writeSubscription(w, status, stored)
	return nil
}

func (s *Server) listSubscriptions(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	all, err := s.opts.Subscriptions.List(r.Context(), actorOf(r.Context()))
	if err != nil {
		return err
	}
	all = visibleSubscriptions(r.Context(), all)
	answer := struct {
		Subscriptions []subscriptionDocument `json:"subscriptions"`
	}{make([]subscriptionDocument, len(all))}
	for i, sub := range all {
		answer.Subscriptions[i] = documentOfSubscription(sub)
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (s *Server) getSubscription(w http.ResponseWriter, r *http.Request) error {
	return s.answerSubscription(w, r, s.opts.Subscriptions.Get)
}

func (s *Server) pauseSubscription(w http.ResponseWriter, r *http.Request) error {
	return s.setPaused(w, r, true)
}

func (s *Server) resumeSubscription(w http.ResponseWriter, r *http.Request) error {
	return s.setPaused(w, r, false)
}

func (s *Server) setPaused(w http.ResponseWriter, r *http.Request, isPaused bool) error {
	return s.answerSubscription(w, r, func(ctx context.Context, owner domain.ActorID, id domain.SubscriptionID) (*subscribe.Subscription, error) {
		return s.opts.Subscriptions.SetPaused(ctx, owner, id, isPaused)
	})
}

// answerSubscription calls f with the actor and the subscription id in the path. It responds with
// the subscription that f returns.
func (s *Server) answerSubscription(w http.ResponseWriter, r *http.Request, f func(context.Context, domain.ActorID, domain.SubscriptionID) (*subscribe.Subscription, error)) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := subscriptionID(r)
	if err != nil {
		return err
	}
	found, err := f(r.Context(), actorOf(r.Context()), id)
	if err != nil {
		return asSubscriptionProblem(r.Context(), err)
	}
	writeSubscription(w, http.StatusOK, found)
	return nil
}

func (s *Server) deleteSubscription(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := subscriptionID(r)
	if err != nil {
		return err
	}
	deleted, err := s.opts.Subscriptions.Delete(r.Context(), actorOf(r.Context()), id, matchOf(r))
	if err != nil {
		return asSubscriptionProblem(r.Context(), err)
	}
	writeJSON(w, http.StatusOK, struct {
		TimeDeleted time.Time `json:"timeDeleted"`
	}{deleted})
	return nil
}

func subscriptionID(r *http.Request) (domain.SubscriptionID, error) {
	id, err := domain.ParseSubscriptionID(pathparam.Value(r, "subscriptionId"))
	if err == nil {
		recordOf(r.Context()).note(slog.String("subscription", id.String()))
	}
	return id, err
}

// asSubscriptionProblem returns the problem for an error whose text may start with a JSON pointer.
func asSubscriptionProblem(ctx context.Context, err error) error {
	if errors.Is(err, subscribe.ErrLimit) {
		return &problemError{
			problem: tooManySubscriptions, cause: err,
			detail: fmt.Sprintf("Nothing was stored: the actor has %d subscriptions, which is the limit. Delete one first.", domain.MaxSubscriptions),
		}
	}
	if errors.Is(err, subscribe.ErrChanged) {
		return &problemError{
			problem: preconditionFailed, cause: err,
			detail: "Nothing was changed: the subscription does not have the version that If-Match names: it was changed, or does not exist. Read it, and repeat the request with its ETag, or without If-Match.",
		}
	}
	p := asProblem(ctx, err)
	if pointer, detail, ok := strings.Cut(p.detail, ": "); ok && p.problem == invalid && strings.HasPrefix(pointer, "/") {
		return badSubscription([]bodyFault{{Pointer: pointer, Detail: detail}})
	}
	return p
}

func badSubscription(faults []bodyFault) error {
	return &problemError{
		problem: invalid, detail: "Nothing was stored, because of what errors names. Correct it and send the request again.",
		faults: faults[:min(len(faults), maxFaults)],
	}
}
