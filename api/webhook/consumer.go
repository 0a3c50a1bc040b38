package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Headers of a call to a consumer of the broker.
const (
	MessageHeader   = "X-Broker-Message-ID"
	ChannelHeader   = "X-Broker-Channel-ID"
	ConsumerHeader  = "X-Broker-Consumer-ID"
	PriorityHeader  = "X-Broker-Message-Priority"
	RetryHeader     = "X-Broker-Message-Attempt" // number of failed attempts
	MetadataHeader  = "X-Broker-Metadata-Headers"
	TokenHeader     = "X-Broker-Consumer-Token"
	defaultMimeType = "application/octet-stream"
)

// A ConsumerCall delivers one message of a channel to one of the channel's consumers. The body of
// the call is the producer's payload.
type ConsumerCall struct {
	ID          string // id of the delivery, from DeliveryID
	Attempts    int    // number of failed attempts before this call
	CallbackURL string
	Token       Key    // token of the consumer, which each call contains and which signs the call
	TokenHeader string // name of the header that contains the token; default TokenHeader
	Channel     string
	Consumer    string
	Message     string // id of the message in the hub
	Priority    int
	ContentType string            // default application/octet-stream
	Metadata    map[string]string // headers from the producer; see CheckHeaders
	Payload     []byte
}

// Call calls a consumer once. Its results are like those of Send.
func (c *Client) Call(ctx context.Context, call *ConsumerCall) (Result, error) {
	return c.sendCall(ctx, 0, func(ctx context.Context, now time.Time) (*http.Request, error) {
		return c.consumerRequest(ctx, call, now)
	})
}

func (c *Client) consumerRequest(ctx context.Context, call *ConsumerCall, now time.Time) (*http.Request, error) {
	if err := c.checkCall(call.CallbackURL); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.CallbackURL, bytes.NewReader(call.Payload))
	if err != nil {
		return nil, &prepareError{"the URL is not valid"}
	}
	h := req.Header
	var names []string
	for _, name := range slices.Sorted(maps.Keys(call.Metadata)) {
		if CheckHeaders(map[string]string{name: call.Metadata[name]}) == nil {
			h.Set(name, call.Metadata[name])
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		h.Set(MetadataHeader, strings.Join(names, ", "))
	}
	h.Set("Content-Type", cmp.Or(call.ContentType, defaultMimeType))
	setOwnHeaders(h, now)
	h.Set(MessageHeader, call.Message)
	h.Set(ChannelHeader, call.Channel)
	h.Set(ConsumerHeader, call.Consumer)
	h.Set(PriorityHeader, strconv.Itoa(call.Priority))
	h.Set(RetryHeader, strconv.Itoa(call.Attempts))
	h.Set(cmp.Or(call.TokenHeader, TokenHeader), string(call.Token))
	setSignatureHeaders(call.ID, []Secret{TokenSecret(call.Token)}, h, call.Payload, now)
	return req, nil
}

// TokenSecret returns the secret that signs calls to a consumer with this token. If the token is a
// secret of Standard Webhooks, it is that secret; otherwise it is the SHA-256 of the token.
func TokenSecret(token Key) Secret {
	if s, err := ParseSecret(string(token)); err == nil {
		return s
	}
	sum := sha256.Sum256([]byte(token))
	return Secret{shared: sum[:]}
}

// TokenVerifyKey returns the key with which a consumer that has this token verifies calls. Its
// format is that of the Standard Webhooks libraries.
func TokenVerifyKey(token Key) string {
	if s, err := ParseSecret(string(token)); err == nil {
		return cmp.Or(s.PublicKey(), string(token))
	}
	sum := sha256.Sum256([]byte(token))
	return sharedPrefix + base64.StdEncoding.EncodeToString(sum[:])
}
