package brokerclient

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"
)

// A StoredMessage is a message that the hub stores for a channel.
type StoredMessage struct {
	ID                string
	ProducerMessageID string // id that the producer has chosen
	Producer          string
	Priority          int
	ContentType       string
	Metadata          map[string]string
	Received          time.Time
	Status            string // Acknowledged or Out-for-delivery; "" if the message is in a bundle

	Payload []byte // payload; nil if the message is in a list
	Jobs    []Job  // jobs of the message; only Message sets them
}

// A Job is the delivery of a message to a consumer. Its id is the id of the consumer.
type Job struct {
	ID       string    `json:"id"`
	Channel  string    `json:"channel,omitempty"` // channel of the message; set only for an overdue job
	Consumer string    `json:"consumer"`
	Message  string    `json:"message"`
	Status   string    `json:"status"` // In-flight, Retry-Delivery, Retry-In-flight, Delivered, Dead or Ended
	Attempts int       `json:"attempts"`
	Due      time.Time `json:"due,omitzero"` // time of the next attempt
	Reason   string    `json:"reason,omitempty"`
	History  []Attempt `json:"history,omitempty"`
}

// An Attempt is a failed call.
type Attempt struct {
	Number     int       `json:"number"`
	Began      time.Time `json:"began"`
	DurationMS float64   `json:"durationMs"`
	Status     int       `json:"status"` // HTTP status of the response; 0 if there was none
	Error      string    `json:"error,omitempty"`
}

// A messageJSON is the JSON of a message. Its payload is text if the payload is UTF-8.
type messageJSON struct {
	ID                string            `json:"id"`
	ProducerMessageID string            `json:"producerMessageId,omitempty"`
	Producer          string            `json:"producer"`
	Priority          int               `json:"priority"`
	ContentType       string            `json:"contentType"`
	Metadata          map[string]string `json:"metadata,omitempty"`
	Received          time.Time         `json:"received"`
	Status            string            `json:"status,omitempty"`
	Payload           *string           `json:"payload,omitempty"`
	PayloadBase64     []byte            `json:"payloadBase64,omitempty"`
	Jobs              []Job             `json:"jobs,omitzero"`
}

// UnmarshalJSON decodes a message from a response of the hub.
func (m *StoredMessage) UnmarshalJSON(text []byte) error {
	var w messageJSON
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*m = StoredMessage{
		ID: w.ID, ProducerMessageID: w.ProducerMessageID, Producer: w.Producer, Priority: w.Priority, ContentType: w.ContentType,
		Metadata: w.Metadata, Received: w.Received, Status: w.Status, Payload: w.PayloadBase64, Jobs: w.Jobs,
	}
	if w.Payload != nil {
		m.Payload = []byte(*w.Payload)
	}
	return nil
}

// MarshalJSON encodes the message as the hub does.
func (m *StoredMessage) MarshalJSON() ([]byte, error) {
	w := messageJSON{
		ID: m.ID, ProducerMessageID: m.ProducerMessageID, Producer: m.Producer, Priority: m.Priority, ContentType: m.ContentType,
		Metadata: m.Metadata, Received: m.Received, Status: m.Status, Jobs: m.Jobs,
	}
	switch {
	case m.Payload == nil:
	case utf8.Valid(m.Payload):
		text := string(m.Payload)
		w.Payload = &text
	default:
		w.PayloadBase64 = m.Payload
	}
	return json.Marshal(w)
}

// Messages returns the messages of a channel in the order of their ids: the lowest priority first
// and, within a priority, the oldest first. The messages contain no payloads and jobs. If since is
// not zero, Messages returns only messages whose status has changed since then. It requires the
// token of the operators or of the channel.
func (c *Client) Messages(ctx context.Context, channel string, since time.Time) iter.Seq2[*StoredMessage, error] {
	r := apiCall{method: http.MethodGet, path: []string{"channel", channel, "messages"}, header: c.asReader()}
	if !since.IsZero() {
		r.query = url.Values{"statusChangedSince": {since.UTC().Format(time.RFC3339Nano)}}
	}
	return listPages[StoredMessage](ctx, c, r, "messages")
}

// Message returns a message with its payload and its jobs. id was assigned either by the hub or by
// the producer. Message requires the token of the operators or of the channel.
func (c *Client) Message(ctx context.Context, channel, id string) (*StoredMessage, error) {
	a, err := c.sendRepeatedly(ctx, &apiCall{method: http.MethodGet, path: []string{"channel", channel, "message", id}, header: c.asReader()})
	if err != nil {
		return nil, err
	}
	m := new(StoredMessage)
	return m, a.decodeBody(m)
}

// DeadLetters returns the dead jobs of a consumer, whose attempts have all failed. It requires the
// token of the operators or of the consumer.
func (c *Client) DeadLetters(ctx context.Context, channel, consumer string) iter.Seq2[*Job, error] {
	r := apiCall{method: http.MethodGet, path: []string{"channel", channel, "consumer", consumer, "dlq"}, header: c.asConsumer()}
	return listPages[Job](ctx, c, r, "deadLetters")
}

// Retrigger restarts all dead jobs of a message, with the full number of attempts. It requires the
// token of the operators. A *Problem with status 409 means that all jobs are Delivered.
func (c *Client) Retrigger(ctx context.Context, channel, message string) error {
	return c.retrigger(ctx, c.asAdmin(), "channel", channel, "message", message, "re-trigger")
}

// RetriggerJob restarts the dead job of a message for a consumer. It requires the token of the
// operators or of the consumer. A *Problem with status 409 means that the job need not be
// restarted.
func (c *Client) RetriggerJob(ctx context.Context, channel, message, consumer string) error {
	return c.retrigger(ctx, c.asConsumer(), "channel", channel, "message", message, "job", consumer, "re-trigger")
}

func (c *Client) retrigger(ctx context.Context, h http.Header, path ...string) error {
	_, err := c.sendRepeatedly(ctx, &apiCall{method: http.MethodPost, path: path, header: h, isOnce: true})
	return err
}
