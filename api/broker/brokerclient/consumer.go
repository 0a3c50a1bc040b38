package brokerclient

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/webhook"
)

// A Delivery is a message that the hub delivers by calling a consumer.
type Delivery struct {
	ID          string // id of the delivery, which is the same in every attempt
	Message     string // id that the hub has assigned to the message
	Channel     string
	Consumer    string
	Priority    int
	Attempts    int // number of failed attempts before this call
	ContentType string
	Metadata    map[string]string // metadata from the producer; the keys are canonical header names
	Payload     []byte
}

// A RetryAfterError is an error of the function that handles messages. It makes the hub call again
// after a pause.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

// Error returns the text of the wrapped error.
func (e *RetryAfterError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("retry after %s", e.After)
	}
	return e.Err.Error()
}

// Unwrap returns the wrapped error.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// ConsumerOptions specify which calls a consumer accepts.
type ConsumerOptions struct {
	// Tokens contains the token of the consumer. It contains two tokens while one replaces the
	// other. A call must contain one of them and be signed with it. Required.
	Tokens      []string
	TokenHeader string // name of the header with the token; default X-Broker-Consumer-Token, which a hub may change

	Tolerance time.Duration // maximum age of a call; default 5 minutes
	MaxBody   int64         // maximum bytes of a call's body; default 1 MB, the limit of a message

	Logger *slog.Logger     // logs refused and failed calls; default: no log
	Clock  func() time.Time // default time.Now
}

// NewConsumer returns a handler for the calls from a hub to a consumer. The handler verifies a call
// and passes its message to handle. If handle returns nil, it responds with 204. For a
// [*RetryAfterError], it responds with 503 and Retry-After, and for any other error with 500: the
// hub then calls again later. If a request is not a call from the hub to this consumer, the handler
// responds with 401 and does not call handle.
//
// A message may be delivered more than once, and handle may be called concurrently.
func NewConsumer(opts ConsumerOptions, handle func(context.Context, *Delivery) error) (http.Handler, error) {
	if len(opts.Tokens) == 0 {
		return nil, errors.New("brokerclient: a consumer needs the token that the hub has for it")
	}
	opts.TokenHeader = cmp.Or(opts.TokenHeader, webhook.TokenHeader)
	opts.MaxBody = cmp.Or(opts.MaxBody, 1<<20)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	c := &consumerHandler{opts: opts, handle: handle}
	for i, token := range opts.Tokens {
		if token == "" {
			return nil, fmt.Errorf("brokerclient: token %d of a consumer is empty", i+1)
		}
		key, err := webhook.ParseVerifyKey(webhook.TokenVerifyKey(webhook.Key(token)))
		if err != nil {
			return nil, err
		}
		c.tokens = append(c.tokens, consumerToken{sha256.Sum256([]byte(token)), webhook.Verifier{Keys: []webhook.VerifyKey{key}, Tolerance: opts.Tolerance}})
	}
	return c, nil
}

// A consumerHandler is the http.Handler that NewConsumer returns.
type consumerHandler struct {
	opts   ConsumerOptions
	handle func(context.Context, *Delivery) error
	tokens []consumerToken
}

type consumerToken struct {
	sum      [sha256.Size]byte
	verifier webhook.Verifier
}

func (c *consumerHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		c.refuseCall(w, r, http.StatusMethodNotAllowed, errors.New("want POST"))
		return
	}
	token := c.findToken(r.Header)
	if token == nil {
		c.refuseCall(w, r, http.StatusUnauthorized, errors.New("it does not carry the token of this consumer"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, c.opts.MaxBody))
	if _, isLong := errors.AsType[*http.MaxBytesError](err); isLong {
		c.refuseCall(w, r, http.StatusRequestEntityTooLarge, fmt.Errorf("its body has more than %d bytes", c.opts.MaxBody))
		return
	}
	if err != nil {
		c.refuseCall(w, r, http.StatusBadRequest, fmt.Errorf("its body is not complete: %w", err))
		return
	}
	if _, err := token.verifier.Verify(r.Header, body, c.opts.Clock()); err != nil {
		c.refuseCall(w, r, http.StatusUnauthorized, err)
		return
	}
	d := deliveryOf(r.Header, body)
	if err := c.handle(r.Context(), d); err != nil {
		c.failCall(w, r, d, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// findToken returns the consumer's token that a call contains, or nil if it contains none. It
// compares in constant time.
func (c *consumerHandler) findToken(h http.Header) *consumerToken {
	sum := sha256.Sum256([]byte(h.Get(c.opts.TokenHeader)))
	var found *consumerToken
	for i := range c.tokens {
		if subtle.ConstantTimeCompare(sum[:], c.tokens[i].sum[:]) == 1 {
			found = &c.tokens[i]
		}
	}
	return found
}

// refuseCall refuses a request that is not a valid call to this consumer.
func (c *consumerHandler) refuseCall(w http.ResponseWriter, r *http.Request, status int, why error) {
	c.opts.Logger.WarnContext(r.Context(), "a call was refused", "status", status, "remote", r.RemoteAddr, "error", why)
	http.Error(w, "the call was refused: "+why.Error(), status)
}

// failCall responds to a call whose message could not be handled. The reason is only logged.
func (c *consumerHandler) failCall(w http.ResponseWriter, r *http.Request, d *Delivery, why error) {
	c.opts.Logger.WarnContext(r.Context(), "a message was not handled; the hub calls again",
		"channel", d.Channel, "message", d.Message, "attempts", d.Attempts, "error", why)
	status := http.StatusInternalServerError
	if later, ok := errors.AsType[*RetryAfterError](why); ok {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", strconv.FormatInt(max(0, int64(math.Ceil(later.After.Seconds()))), 10))
	}
	http.Error(w, "the message was not handled", status)
}

// deliveryOf returns the delivery of a verified call.
func deliveryOf(h http.Header, body []byte) *Delivery {
	number := func(name string) int {
		n, err := strconv.Atoi(h.Get(name))
		if err != nil {
			return 0 // unreachable, because the hub always sends a number
		}
		return n
	}
	d := &Delivery{
		ID: h.Get("Webhook-Id"), Message: h.Get(webhook.MessageHeader), Channel: h.Get(webhook.ChannelHeader), Consumer: h.Get(webhook.ConsumerHeader),
		Priority: number(webhook.PriorityHeader), Attempts: number(webhook.RetryHeader),
		ContentType: h.Get("Content-Type"), Metadata: make(map[string]string), Payload: body,
	}
	for name := range strings.SplitSeq(h.Get(webhook.MetadataHeader), ",") {
		if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); name != "" {
			d.Metadata[name] = h.Get(name)
		}
	}
	return d
}
