//go:build unix

package crashsites

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/bench/ledger"
	"github.com/messagehub/messagehub/cosmos/embedded/clock"
)

// A clientLoad runs the HTTP clients that send and fetch events. Each client repeats its requests while the hub is
// dead.
type clientLoad struct {
	url    string
	http   *http.Client
	ledger *crashLedger
	stop   chan struct{} // closed when sending must stop

	content string // folder of the hub in which the content of open bundles is deleted; "" means that no content is deleted
}

// actors are the recipients. Their number is large enough that some can continue while the events of others wait for the lease of
// a dead hub's Save to end.
var actors = []string{"actor-1", "actor-2", "actor-3", "actor-4", "actor-5", "actor-6", "actor-7", "actor-8"}

// outstandingLimit returns the limit for the outstanding events of an actor. Half of the actors may have events in
// several drawers, so that their bundles span drawers. The other actors may have only one event, so that kills rarely
// interrupt their Saves.
func outstandingLimit(actor string) int {
	if slices.Index(actors, actor)%2 == 0 {
		return 12
	}
	return 1
}

var origins = []string{manifest, inline, request}

// awaitRoom waits until at least one of the actors is below its limit, and returns the actors below their limit. The
// result is empty when sending must stop.
func (l *clientLoad) awaitRoom(ctx context.Context, actors ...string) (ready []string) {
	for {
		select {
		case <-l.stop:
			return nil
		case <-ctx.Done():
			return nil
		default:
		}
		_, changed := l.ledger.countOutstanding()
		for _, actor := range actors {
			if n, _ := l.ledger.countOutstanding(actor); n < outstandingLimit(actor) {
				ready = append(ready, actor)
			}
		}
		if len(ready) > 0 {
			return ready
		}
		select {
		case <-changed:
		case <-l.stop:
		case <-ctx.Done():
		}
	}
}

// newID returns a new event id.
func newID(random *rand.Rand) string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], random.Uint64())
	binary.LittleEndian.PutUint64(b[8:], random.Uint64())
	return uuid.Must(uuid.NewRandomFromReader(bytes.NewReader(b[:]))).String()
}

// An httpAnnouncement is an event in the form that a client sends over HTTP.
type httpAnnouncement struct {
	ID               string          `json:"id"`
	Recipient        string          `json:"recipient"`
	Origin           string          `json:"origin"`
	ContentType      string          `json:"contentType"`
	DocumentType     string          `json:"documentType"`
	SupportsBundling bool            `json:"supportsBundling"`
	Weight           int             `json:"weight"`
	Payload          json.RawMessage `json:"payload,omitempty"`
}

// writeBatches sends batches to an actor, each until it is accepted.
func (l *clientLoad) writeBatches(ctx context.Context, actor string, random *rand.Rand) error {
	for len(l.awaitRoom(ctx, actor)) > 0 {
		batch := make([]httpAnnouncement, 1+random.IntN(5))
		for i := range batch {
			origin := origins[random.IntN(len(origins))]
			e := httpAnnouncement{
				ID: newID(random), Recipient: actor, Origin: origin, ContentType: "data", DocumentType: "E66",
				SupportsBundling: random.IntN(10) > 0, Weight: 1,
			}
			if origin != request {
				e.Payload = fmt.Appendf(nil, `{"id":%q}`, e.ID)
			}
			l.ledger.Send(ledger.Event{Recipient: actor, ID: e.ID, Cabinet: origin, Sender: sendsOverHTTP})
			batch[i] = e
		}
		body, err := json.Marshal(batch)
		if err != nil {
			return err
		}
		err = l.retryUntilDone(ctx, func() error {
			a, err := l.sendRequest(ctx, http.MethodPost, "/v1/data-available", "", body)
			if err != nil {
				return err
			}
			var counts struct{ Accepted, Duplicates int }
			if err := json.Unmarshal(a.body, &counts); err != nil || counts.Accepted+counts.Duplicates != len(batch) {
				return l.ledger.Report("%d events were sent to %s, and answered %s", len(batch), actor, a.body)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// runActor peeks and dequeues until ctx ends, or quiet is closed and the mailbox is empty.
func (l *clientLoad) runActor(ctx context.Context, actor string, random *rand.Rand, quiet <-chan struct{}) error {
	for {
		select {
		case <-quiet:
			if n, _ := l.ledger.countOutstanding(actor); n == 0 {
				return nil
			}
		default:
		}
		id, err := l.peekBundle(ctx, actor)
		if err == nil && id != "" && l.content != "" && random.IntN(2) == 0 {
			err = l.loseContent(ctx, actor, id, random.IntN(2) == 0)
		}
		if err == nil && id != "" && random.IntN(4) == 0 {
			var again string
			if again, err = l.peekBundle(ctx, actor); err == nil && again != id {
				err = l.ledger.Report("%s was given bundle %s and then, before its Dequeue, %q", actor, id, again)
			}
		}
		if err == nil && id != "" {
			err = l.dequeueBundle(ctx, actor, id)
		}
		if err != nil {
			return err
		}
	}
}

func (l *clientLoad) peekBundle(ctx context.Context, actor string) (id string, err error) {
	return l.peekOnce(ctx, actor, false)
}

// peekOnce repeats a Peek until it is answered. If areReported is true, the hub was notified of all deleted content, so
// a response with the problem content-gone is a violation.
func (l *clientLoad) peekOnce(ctx context.Context, actor string, areReported bool) (id string, err error) {
	return id, l.retryUntilDone(ctx, func() error {
		start := l.ledger.Now()
		a, err := l.sendRequest(ctx, http.MethodGet, "/v1/peek?wait=1s", actor, nil)
		if refused, is := errors.AsType[*refusalError](err); is && areReported && bytes.Contains(refused.body, []byte("content-gone")) {
			return l.ledger.Report("L9: %s is handed out a content that was reported to be deleted: %s", actor, refused.body)
		}
		if id = a.id; err != nil || id == "" {
			return err
		}
		return l.ledger.notePeeked(actor, id, a.body, start)
	})
}

// dequeueBundle repeats a Dequeue until it is answered. A 404 is allowed only after an attempt whose answer may have
// been lost.
func (l *clientLoad) dequeueBundle(ctx context.Context, actor, id string) error {
	lost := false
	return l.retryUntilDone(ctx, func() error {
		_, err := l.sendRequest(ctx, http.MethodDelete, "/v1/dequeue/"+id, actor, nil)
		if refused, ok := errors.AsType[*refusalError](err); ok && refused.status == http.StatusNotFound {
			if !lost {
				return l.ledger.Report("bundle %s of %s is 404, although it was given and never dequeued", id, actor)
			}
			err = nil
		}
		if err != nil {
			lost = true
			return err
		}
		l.ledger.noteDequeued(actor, id)
		return nil
	})
}

// retryUntilDone repeats try until it succeeds or fails permanently.
func (l *clientLoad) retryUntilDone(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if _, ok := errors.AsType[*ledger.Violation](err); ok {
			return err
		}
		if refused, ok := errors.AsType[*refusalError](err); ok && !refused.canPass() {
			return err
		}
		_ = clock.Sleep(ctx, 5*time.Millisecond) // if ctx has ended, the next attempt fails
	}
}

type httpAnswer struct {
	id   string // id of the bundle
	body []byte
}

// A refusalError is an answer with a status that reports a failure.
type refusalError struct {
	status int
	body   []byte
}

func (r *refusalError) Error() string { return fmt.Sprintf("%d %s", r.status, r.body) }

func (r *refusalError) canPass() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func (l *clientLoad) sendRequest(ctx context.Context, method, path, actor string, body []byte) (a httpAnswer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, l.url+path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if strings.HasPrefix(path, "/v1/events") {
		req.Header.Set("Content-Type", "application/cloudevents+json")
	}
	if path == objectEventsPath {
		req.Header.Set("Authorization", "Bearer "+operatorToken)
	}
	if actor != "" {
		req.Header.Set("X-Actor-Id", actor)
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return httpAnswer{}, err
	}
	if resp.StatusCode/100 != 2 {
		return httpAnswer{}, &refusalError{resp.StatusCode, a.body}
	}
	a.id = resp.Header.Get("MessageId")
	return a, nil
}
