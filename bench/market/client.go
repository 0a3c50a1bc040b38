package market

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/messagehub/messagehub/bench/tokens"
)

// A marketClient sends requests to a hub as a domain and as any actor. It uses little
// CPU time, because it shares the machine with the hub.
type marketClient struct {
	url  string
	http *http.Client

	bearers map[string]string // Authorization header of each actor, and of the domain under ""; empty if the hub requires no tokens
}

// newMarketClient returns a client that retains a connection for each concurrent operation, so that
// only the first operations dial.
func newMarketClient(url string) *marketClient {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 4096, 4096
	t.DisableCompression = true
	return &marketClient{url: url, http: &http.Client{Transport: t}, bearers: make(map[string]string)}
}

// signTokens signs tokens of an issuer for the domain and the members of a crowd, unless
// the issuer is nil.
func (c *marketClient) signTokens(issuer *tokens.Issuer, of *recipientCrowd) error {
	if issuer == nil {
		return nil
	}
	ends := time.Now().Add(time.Hour)
	domain, err := issuer.Domain("TimeSeries")
	if err != nil {
		return err
	}
	c.bearers[""] = "Bearer " + domain
	for _, m := range of.members {
		actor, err := issuer.Actor(m.name, ends)
		if err != nil {
			return err
		}
		c.bearers[m.name] = "Bearer " + actor
	}
	return nil
}

func (c *marketClient) close() { c.http.CloseIdleConnections() }

// A statusCodeError is the status of a failed request.
type statusCodeError int

func (u statusCodeError) Error() string { return fmt.Sprintf("the hub answered %d", int(u)) }

// failureOf returns the kind of a failure, "" for nil.
func failureOf(err error) string {
	if err == nil {
		return ""
	}
	if status, ok := errors.AsType[statusCodeError](err); ok {
		return strconv.Itoa(int(status))
	}
	return "no answer"
}

// sendEvents sends a request with a body of events.
func (c *marketClient) sendEvents(ctx context.Context, body []byte) error {
	_, _, err := c.sendRequest(ctx, http.MethodPost, "/v1/data-available", "", body, http.StatusAccepted)
	return err
}

// fetchBundle fetches the actor's bundle to its last byte. It returns "" if no
// bundle is available.
func (c *marketClient) fetchBundle(ctx context.Context, actor string) (bundle string, events int, err error) {
	header, events, err := c.sendRequest(ctx, http.MethodGet, "/v1/peek", actor, nil, http.StatusOK)
	if none, ok := errors.AsType[statusCodeError](err); ok && none == http.StatusNoContent {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	return header["Messageid"][0], events, nil
}

func (c *marketClient) dequeueBundle(ctx context.Context, actor, bundle string) error {
	_, _, err := c.sendRequest(ctx, http.MethodDelete, "/v1/dequeue/"+bundle, actor, nil, http.StatusOK)
	return err
}

// sendRequest sends a request, and returns the number of events in the body of the response.
func (c *marketClient) sendRequest(ctx context.Context, method, path, actor string, body []byte, want int) (http.Header, int, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	if bearer := c.bearers[actor]; bearer != "" {
		req.Header.Set("Authorization", bearer)
	} else if actor != "" {
		req.Header.Set("X-Actor-Id", actor)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	events, err := countEvents(resp.Body)
	if err == nil && resp.StatusCode != want {
		err = statusCodeError(resp.StatusCode)
	}
	return resp.Header, events, err
}

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// countEvents reads a manifest to its end and counts its events. Each event has the
// member sequence once, and texts with escaped quotes do not occur.
func countEvents(body io.Reader) (n int, err error) {
	needle := []byte(`"sequence":`)
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	kept := 0 // number of bytes of the previous read that may be the beginning of a match
	for {
		read, err := body.Read(buffer[kept:])
		text := buffer[:kept+read]
		n += bytes.Count(text, needle)
		kept = copy(buffer[:], text[max(0, len(text)-len(needle)+1):])
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// appendEvents encodes n events of 1 KB for one cabinet of a recipient, with random
// UUIDs as ids.
func appendEvents(body []byte, recipient string, n int, random *rand.Rand) []byte {
	for i := range n {
		if i == 0 {
			body = append(body, '[')
		} else {
			body = append(body, ',')
		}
		body = append(body, `{"id":"`...)
		body = appendUUID(body, random)
		body = append(body, `","recipient":"`...)
		body = append(body, recipient...)
		body = append(body, `","origin":"TimeSeries","contentType":"RSM-012","documentType":"E66","supportsBundling":true,"weight":1}`...)
	}
	return append(body, ']')
}

func appendUUID(to []byte, random *rand.Rand) []byte {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], random.Uint64())
	binary.BigEndian.PutUint64(id[8:], random.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, RFC 9562
	for i, end := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			to = append(to, '-')
		}
		to = hex.AppendEncode(to, id[[...]int{0, 4, 6, 8, 10}[i]:end])
	}
	return to
}
