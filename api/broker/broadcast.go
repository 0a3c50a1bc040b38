package broker

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// Headers of a request that broadcasts a message.
const (
	PriorityHeader  = "X-Broker-Message-Priority"
	MessageIDHeader = "X-Broker-Message-Id"
	// MetadataHeader contains the names of the headers that are delivered with the message,
	// separated by commas.
	MetadataHeader = "X-Broker-Metadata-Headers"
)

const defaultContentType = "application/octet-stream"

// broadcast stores a message before it responds.
func (e *edge) broadcast(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	channel, err := e.channelOf(r)
	if err != nil {
		return err
	}
	if _, err := query.Parse(r); err != nil {
		return err
	}
	if err := e.service.CheckProducer(r.Context(), creds, channel); err != nil {
		return err
	}
	if err := checkCoding(w, r); err != nil {
		return err
	}
	b := broker.Broadcast{ContentType: cmp.Or(r.Header.Get("Content-Type"), defaultContentType), Metadata: metadataOf(r.Header)}
	if b.ID, err = messageIDOf(r.Header); err != nil {
		return err
	}
	if b.Priority, err = priorityOf(r.Header.Values(PriorityHeader)); err != nil {
		return err
	}
	payload, release, err := e.host.ReadBody(w, r, domain.MaxPayload)
	if err != nil {
		return err
	}
	defer release()
	b.Payload = payload
	id, _, err := e.service.Broadcast(r.Context(), creds, channel, &b)
	if err != nil {
		return err
	}
	e.host.Note(r.Context(), slog.String("message", id))
	w.Header().Set("Location", messagePath(channel, id))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusCreated)
	return nil
}

// messageIDOf returns the id that the producer has chosen, or "" if it has chosen none.
func messageIDOf(h http.Header) (string, error) {
	lines := h.Values(MessageIDHeader)
	switch {
	case len(lines) == 0:
		return "", nil
	case len(lines) > 1 || lines[0] == "":
		return "", domain.Errorf(domain.Invalid, "%s: want one id", MessageIDHeader)
	}
	return lines[0], nil
}

// priorityOf returns the priority of a message. It replaces an integer outside of the permitted
// range with the nearest permitted one.
func priorityOf(lines []string) (int, error) {
	if len(lines) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(lines[0]), 10, 64) // ParseInt replaces an out-of-range number with the nearest int64
	if err != nil && !errors.Is(err, strconv.ErrRange) || len(lines) > 1 {
		return 0, domain.Errorf(domain.Invalid, "%s: want an integer of 0 to %d, got %q", PriorityHeader, domain.Priorities-1, domain.Shorten(strings.Join(lines, ", ")))
	}
	return int(min(max(n, 0), domain.Priorities-1)), nil
}

// metadataOf returns those headers of the request that X-Broker-Metadata-Headers names.
func metadataOf(h http.Header) map[string]string {
	metadata := make(map[string]string)
	for _, line := range h.Values(MetadataHeader) {
		for name := range strings.SplitSeq(line, ",") {
			name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
			if lines := h.Values(name); name != "" && len(lines) > 0 {
				metadata[name] = strings.Join(lines, ", ")
			}
		}
	}
	return metadata
}
