package brokerclient

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Message is a message that a producer publishes.
type Message struct {
	// ID is chosen by the producer. Within 24 hours, the hub stores a message with the same ID only
	// once; it refuses different content under this ID with status 409. If ID is "", each call of
	// Publish stores a new message.
	ID          string
	Priority    int               // 0 to 9; messages with a higher priority are delivered first
	ContentType string            // default application/octet-stream
	Metadata    map[string]string // headers that are delivered to the consumers
	Payload     []byte            // at most 1 MB
}

// Publish sends a message to the consumers of a channel and returns the id that the hub has
// assigned. When Publish returns without an error, the message is stored. It requires the tokens of
// the channel and of the producer.
//
// After a temporary failure, Publish repeats a message that has an ID. If Publish fails with a
// *Problem with a status below 500, the message is not stored. After any other error the message
// may be stored, and the caller can publish it again with the same ID.
func (c *Client) Publish(ctx context.Context, channel string, m *Message) (id string, err error) {
	creds := &c.opts.Credentials
	h := newHeader(channelTokenHeader, creds.ChannelToken)
	setUnlessEmpty(h, producerIDHeader, creds.ProducerID)
	setUnlessEmpty(h, producerTokenHeader, creds.ProducerToken)
	setUnlessEmpty(h, messageIDHeader, m.ID)
	setUnlessEmpty(h, "Content-Type", m.ContentType)
	if m.Priority != 0 {
		h.Set(priorityHeader, strconv.Itoa(m.Priority))
	}
	names := slices.Sorted(maps.Keys(m.Metadata))
	for _, name := range names {
		if h.Get(name) != "" {
			return "", errors.New("brokerclient: metadata: header " + name + " is one of the broker, or there twice")
		}
		h.Set(name, m.Metadata[name])
	}
	if len(names) > 0 {
		h.Set(metadataHeader, strings.Join(names, ", "))
	}
	a, err := c.sendRepeatedly(ctx, &apiCall{
		method: http.MethodPost, path: []string{"channel", channel, "broadcast"}, header: h, body: m.Payload, isOnce: m.ID == "",
	})
	if err != nil {
		return "", err
	}
	location, err := url.Parse(a.header.Get("Location"))
	if err != nil || path.Base(path.Dir(location.Path)) != "message" {
		return "", errors.New("the answer of the hub cannot be read: it does not say where the message is")
	}
	return path.Base(location.Path), nil
}
