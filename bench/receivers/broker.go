package receivers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The credentials of the channel that a Producer sends to.
const (
	producerID    = "bench"
	producerToken = "token-of-the-producer"
	channelToken  = "token-of-the-channel"
	consumerToken = "token-of-a-consumer" //nolint:gosec // of a hub that the bench starts
)

// A Producer sends messages to a channel of the broker of a hub, one by one.
type Producer struct {
	Client  *http.Client
	URL     string // URL of the hub
	Token   string // token of the hub's operators
	Channel string
	Bytes   int // approximate size of a message
}

// Create creates the producer and the channel with a consumer for each callback.
func (p *Producer) Create(ctx context.Context, callbacks ...string) error {
	if err := p.putForm(ctx, "/broker/producer/"+producerID, url.Values{"token": {producerToken}}); err != nil {
		return err
	}
	if err := p.putForm(ctx, "/broker/channel/"+p.Channel, url.Values{"token": {channelToken}}); err != nil {
		return err
	}
	for i, callback := range callbacks {
		form := url.Values{"token": {consumerToken}, "callbackUrl": {callback}}
		if err := p.putForm(ctx, fmt.Sprintf("/broker/channel/%s/consumer/%d", p.Channel, i), form); err != nil {
			return err
		}
	}
	return nil
}

func (p *Producer) putForm(ctx context.Context, path string, form url.Values) error {
	return p.sendRequest(ctx, http.MethodPut, path, form.Encode(), http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "X-Broker-Admin-Token": {p.Token},
	})
}

// Send broadcasts a message for an event, and records the due time of the event at s.
func (p *Producer) Send(ctx context.Context, s *Server, due time.Time, event string) error {
	s.Due(event, due)
	return p.SendUncounted(ctx, event)
}

// SendUncounted broadcasts a message for an event whose calls are not counted.
func (p *Producer) SendUncounted(ctx context.Context, event string) error {
	body, err := json.Marshal(map[string]any{"event": map[string]string{"id": event}, "data": strings.Repeat("x", p.Bytes)})
	if err != nil {
		return err
	}
	return p.sendRequest(ctx, http.MethodPost, "/broker/channel/"+p.Channel+"/broadcast", string(body), http.Header{
		"Content-Type": {"application/json"}, "X-Broker-Channel-Token": {channelToken},
		"X-Broker-Producer-Id": {producerID}, "X-Broker-Producer-Token": {producerToken},
	})
}

func (p *Producer) sendRequest(ctx context.Context, method, path, body string, header http.Header) error {
	req, err := http.NewRequestWithContext(ctx, method, p.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	resp, err := p.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err == nil && resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return err
}
