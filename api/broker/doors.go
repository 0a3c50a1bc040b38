package broker

import (
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

func (e *edge) peek(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	consumer, err := e.consumerOf(r)
	if err != nil {
		return err
	}
	values, err := query.Parse(r, "size")
	if err != nil {
		return err
	}
	size, err := sizeOf(values, min(defaultSize, broker.MaxPeek), broker.MaxPeek)
	if err != nil {
		return err
	}
	memory := e.newReservation("consumer " + consumer.Channel().String() + " " + consumer.String())
	defer memory.close()
	b, err := e.service.Peek(r.Context(), creds, consumer, size, memory.reserve)
	if err != nil {
		return err
	}
	if b == nil {
		writeEmpty(w, http.StatusNoContent)
		return nil
	}
	e.host.Note(r.Context(), slog.String("bundle_id", b.ID), slog.Int("messages", len(b.Messages)))
	answer := struct {
		Bundle   string            `json:"bundle"`
		Messages []messageDocument `json:"messages"`
		Dequeue  string            `json:"dequeueUrl"`
	}{b.ID, make([]messageDocument, len(b.Messages)), consumerPath(consumer) + "/dequeue/" + b.ID}
	for i, m := range b.Messages {
		answer.Messages[i] = documentOfMessage(m)
		answer.Messages[i].payloadDocument = documentOfPayload(m.Payload)
	}
	writeJSON(w, http.StatusOK, latestReceived(b.Messages), answer)
	return nil
}

func (e *edge) dequeue(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	consumer, err := e.consumerOf(r)
	if err != nil {
		return err
	}
	if _, err := query.Parse(r); err != nil {
		return err
	}
	bundle := pathparam.Value(r, "bundleId")
	e.host.Note(r.Context(), slog.String("bundle_id", domain.Shorten(bundle)))
	if err := e.service.Dequeue(r.Context(), creds, consumer, bundle); err != nil {
		return err
	}
	writeEmpty(w, http.StatusNoContent)
	return nil
}
