package broker

import (
	"log/slog"
	"net/http"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/domain"
)

// producerOf, channelOf and consumerOf return the id of the party in the path of a request. They
// fail with Invalid if the id is invalid.

func (e *edge) producerOf(r *http.Request) (domain.PartyID, error) {
	id, err := domain.Producers.Parse(pathparam.Value(r, "producerId"))
	if err == nil {
		e.host.Note(r.Context(), slog.String("producer", id.String()))
	}
	return id, err
}

func (e *edge) channelOf(r *http.Request) (domain.PartyID, error) {
	id, err := domain.Channels.Parse(pathparam.Value(r, "channelId"))
	if err == nil {
		e.host.Note(r.Context(), slog.String("channel", id.String()))
	}
	return id, err
}

func (e *edge) consumerOf(r *http.Request) (domain.PartyID, error) {
	return e.consumerNamedBy(r, "consumerId")
}

func (e *edge) consumerNamedBy(r *http.Request, param string) (domain.PartyID, error) {
	channel, err := e.channelOf(r)
	if err != nil {
		return channel, err
	}
	id, err := channel.Consumers().Parse(pathparam.Value(r, param))
	if err == nil {
		e.host.Note(r.Context(), slog.String("consumer", id.String()))
	}
	return id, err
}

func (e *edge) messageOf(r *http.Request) string {
	id := pathparam.Value(r, "messageId")
	e.host.Note(r.Context(), slog.String("message", domain.Shorten(id)))
	return id
}

// Functions that return paths for responses. The paths need no percent-encoding, because the names
// of parties and the ids of messages contain only safe characters.

func partyPath(id domain.PartyID) string {
	switch {
	case id.IsConsumer():
		return consumerPath(id)
	case id.List() == domain.Channels:
		return channelPath(id)
	}
	return "/broker/producer/" + id.String()
}

func channelPath(channel domain.PartyID) string { return "/broker/channel/" + channel.String() }

func consumerPath(consumer domain.PartyID) string {
	return channelPath(consumer.Channel()) + "/consumer/" + consumer.String()
}

func messagePath(channel domain.PartyID, message string) string {
	return channelPath(channel) + "/message/" + message
}

func retriggerPath(consumer domain.PartyID, message string) string {
	return messagePath(consumer.Channel(), message) + "/job/" + consumer.String() + "/re-trigger"
}
