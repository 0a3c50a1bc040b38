package broker

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A messageDocument is the JSON of a message in a response.
type messageDocument struct {
	ID                string            `json:"id"`
	ProducerMessageID string            `json:"producerMessageId,omitempty"` // id that the producer has chosen
	Producer          string            `json:"producer"`
	Priority          int               `json:"priority"`
	ContentType       string            `json:"contentType"`
	Metadata          map[string]string `json:"metadata,omitempty"`
	Received          time.Time         `json:"received"`
	Status            string            `json:"status,omitempty"` // omitted in a bundle
	*payloadDocument                    // payload; nil in a list
	Jobs              *[]jobDocument    `json:"jobs,omitempty"` // set only in a response with a single message
}

// A payloadDocument contains a payload as text or in Base64.
type payloadDocument struct {
	Payload       *string `json:"payload,omitempty"`
	PayloadBase64 []byte  `json:"payloadBase64,omitempty"`
}

func documentOfPayload(payload []byte) *payloadDocument {
	if !isPlainText(payload) {
		return &payloadDocument{PayloadBase64: payload}
	}
	text := string(payload)
	return &payloadDocument{Payload: &text}
}

// isPlainText reports whether a payload is text whose JSON string is at most about twice as large
// as the payload.
func isPlainText(payload []byte) bool {
	if !utf8.Valid(payload) {
		return false
	}
	for _, c := range payload {
		if c < ' ' && !strings.ContainsRune("\t\n\r", rune(c)) || c == 0x7f {
			return false
		}
	}
	return true
}

func documentOfMessage(m *broker.Message) messageDocument {
	return messageDocument{
		ID: m.ID, ProducerMessageID: m.ProducerID, Producer: m.Producer, Priority: m.Priority, ContentType: m.ContentType,
		Metadata: m.Metadata, Received: m.Received.UTC(), Status: string(m.Status),
	}
}

func (e *edge) getMessage(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	channel, err := e.channelOf(r)
	if err != nil {
		return err
	}
	if _, err := query.Parse(r); err != nil {
		return err
	}
	memory := e.newReservation("channel " + channel.String())
	defer memory.close()
	m, err := e.service.Message(r.Context(), creds, channel, e.messageOf(r), memory.reserve)
	if err != nil {
		return err
	}
	d := documentOfMessage(m)
	d.payloadDocument = documentOfPayload(m.Payload)
	jobs := make([]jobDocument, len(m.Jobs))
	changed := m.Received
	for i := range m.Jobs {
		jobs[i] = documentOfJob(&m.Jobs[i])
		changed = laterOf(changed, lastAttempt(&m.Jobs[i]))
	}
	d.Jobs = &jobs
	writeJSON(w, http.StatusOK, changed, d)
	return nil
}

func (e *edge) listMessages(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	channel, err := e.channelOf(r)
	if err != nil {
		return err
	}
	p, err := pageOf(r, "statusChangedSince")
	if err != nil {
		return err
	}
	q := broker.MessageQuery{Limit: p.size}
	if q.First, err = p.firstEntry(); err != nil {
		return err
	}
	if p.values.Has("statusChangedSince") {
		// Decoding the query has turned a plus sign that was not percent-encoded into a blank.
		text := strings.ReplaceAll(p.values.Get("statusChangedSince"), " ", "+")
		if q.StatusChangedSince, err = time.Parse(time.RFC3339, text); err != nil {
			return domain.Errorf(domain.Invalid, "statusChangedSince: want a time of RFC 3339, such as 2026-11-25T20:41:08Z, got %q", domain.Shorten(text))
		}
	}
	found, next, more, err := e.service.Messages(r.Context(), creds, channel, q)
	if err != nil {
		return err
	}
	answer := struct {
		Messages []messageDocument `json:"messages"`
		Next     string            `json:"next,omitempty"`
	}{Messages: make([]messageDocument, len(found))}
	for i := range found {
		answer.Messages[i] = documentOfMessage(found[i])
	}
	if more {
		answer.Next = p.nextPath(channelPath(channel)+"/messages", next.MessageID())
	}
	writeJSON(w, http.StatusOK, latestReceived(found), answer)
	return nil
}

// latestReceived returns the latest of the times at which the hub received messages.
func latestReceived(messages []*broker.Message) (latest time.Time) {
	for _, m := range messages {
		latest = laterOf(latest, m.Received)
	}
	return latest
}
