package webhook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// AttemptHeader is the header that contains the number of failed attempts.
const AttemptHeader = "X-Dss-Notify-Attempt"

// DefaultKeyID returns the default id of the HMAC key of a subscription.
func DefaultKeyID(subscription string) string { return "hca-dss:" + subscription }

// newRequest returns the request of a delivery.
func (c *Client) newRequest(ctx context.Context, d *Delivery, now time.Time) (*http.Request, error) {
	if err := c.checkCall(d.Settings.CallbackURL); err != nil {
		return nil, err
	}
	body, contentType, err := d.encodeBody()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, d.Settings.Method, d.Settings.CallbackURL, bytes.NewReader(body))
	if err != nil {
		return nil, &prepareError{"the URL or the method is not valid"}
	}
	h := req.Header
	for name, value := range d.Headers {
		if CheckHeaders(map[string]string{name: value}) == nil {
			h.Set(name, value)
		}
	}
	digest := sha256.Sum256(body)
	h.Set("Content-Type", contentType)
	setOwnHeaders(h, now)
	h.Set("Digest", "SHA-256="+base64.StdEncoding.EncodeToString(digest[:]))
	h.Set(AttemptHeader, strconv.Itoa(d.Attempts))
	if d.HMACKey != "" {
		h.Set("Authorization", hmacAuthorization(d, h))
	}
	setSignatureHeaders(d.ID, d.Secrets, h, body, now)
	return req, nil
}

// checkCall fails unless the URL may be called. The error does not contain the URL.
func (c *Client) checkCall(url string) error {
	if _, err := c.parseURL(url); err != nil {
		wrong, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), callbackPointer+": "), ", got ") // after "got", the error contains a part of the URL, which may be a secret
		return &prepareError{"the URL may not be called: " + wrong}
	}
	return nil
}

// setOwnHeaders sets the headers that all calls contain.
func setOwnHeaders(h http.Header, now time.Time) {
	h.Set("User-Agent", "MessageHub")
	h.Set("Accept-Encoding", "identity")
	h.Set("Date", now.UTC().Format(http.TimeFormat))
}

// setTrace adds the trace context in ctx, if any, as headers. These headers are not signed.
func setTrace(ctx context.Context, h http.Header) {
	c := domain.TraceContextOf(ctx)
	if c.IsZero() {
		return
	}
	h.Set("Traceparent", c.Parent())
	h.Del("Tracestate")
	if c.State != "" {
		h.Set("Tracestate", c.State)
	}
}

// hmacAuthorization returns an Authorization header: an HMAC signature of the headers Date and
// Digest in h.
func hmacAuthorization(d *Delivery, h http.Header) string {
	keyID := d.Settings.HMACKeyID
	if keyID == "" {
		keyID = DefaultKeyID(d.Subscription)
	}
	text := "date: " + h.Get("Date") + "\ndigest: " + h.Get("Digest")
	signature := base64.StdEncoding.EncodeToString(hmacSHA256([]byte(d.HMACKey), text, nil))
	return fmt.Sprintf(`Signature keyId="%s",algorithm="hmac-sha256",headers="date digest",signature="%s"`,
		strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(keyID), signature)
}

// setSignatureHeaders sets the headers of Standard Webhooks, which contain the signatures.
func setSignatureHeaders(id string, secrets []Secret, h http.Header, body []byte, now time.Time) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	var signatures []string
	for _, s := range secrets {
		if signature := s.sign(id+"."+timestamp+".", body); signature != "" {
			signatures = append(signatures, signature)
		}
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", timestamp)
	if len(signatures) > 0 {
		h.Set("Webhook-Signature", strings.Join(signatures, " "))
	}
}
