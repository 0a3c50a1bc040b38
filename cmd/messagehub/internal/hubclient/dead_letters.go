package hubclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A DeadLetter is a dead letter of a Service Bus queue.
type DeadLetter struct {
	SequenceNumber string    `json:"sequenceNumber"`
	MessageID      string    `json:"messageId"`
	Session        *string   `json:"session"`
	Enqueued       time.Time `json:"enqueued"`
	Reason         string    `json:"reason"`
	Description    string    `json:"description"`
	DeliveryCount  int       `json:"deliveryCount"`
	Bytes          int64     `json:"bytes"`
	ContentType    string    `json:"contentType"`
	Subject        string    `json:"subject"`
	ResentBy       string    `json:"resentBy"`

	// Properties, Text and Base64 are set only if the body was requested.
	Properties map[string]string `json:"properties"`
	Text       *string           `json:"text"`
	Base64     string            `json:"base64"`
	IsCut      bool              `json:"cut"`
}

// A DeadLetterQueue describes a queue of the hub, and counts its dead letters.
type DeadLetterQueue struct {
	Queue       string `json:"queue"`
	Use         string `json:"use"`
	DeadLetters *int64 `json:"deadLetters"` // number of dead letters; nil if unknown
	NoResend    string `json:"noResend"`
}

// A DeadLetterRecord records what an operator did with dead letters of a queue.
type DeadLetterRecord struct {
	When           time.Time `json:"when"`
	Who            string    `json:"who"`
	Why            string    `json:"why"`
	What           string    `json:"what"`
	SequenceNumber string    `json:"sequenceNumber"`
	MessageID      string    `json:"messageId"`
	Reason         string    `json:"reason"`
	Outcome        string    `json:"outcome"`
	Count          int       `json:"count"`
}

// A DeadLetterAction describes what an operator does with dead letters. If
// IsResend is true, the hub sends the dead letters again; otherwise it deletes
// them.
type DeadLetterAction struct {
	Who, Why string
	IsResend bool
}

const (
	deadLettersPath  = "/v1/admin/dead-letters"
	maxDeadLetters   = 100 // maximum number of dead letters on a page
	maxDeadLetterDoc = 64 << 20
)

// DeadLetterQueues returns the hub's queues, and the JSON response that
// describes them.
func (c *Client) DeadLetterQueues(ctx context.Context) ([]DeadLetterQueue, []byte, error) {
	var answer struct {
		Queues []DeadLetterQueue `json:"queues"`
	}
	text, err := c.deadLetterCall(ctx, http.MethodGet, "", nil, &answer)
	return answer.Queues, text, err
}

// DeadLetters calls each with every page of a queue's dead letters, until each
// returns false. If reason is not "", only dead letters with that reason are
// listed.
func (c *Client) DeadLetters(ctx context.Context, queue, reason string, each func(page []json.RawMessage, hasMore bool) bool) error {
	values := url.Values{"queue": {queue}, "limit": {strconv.Itoa(maxDeadLetters)}}
	if reason != "" {
		values.Set("reason", reason)
	}
	for {
		var page struct {
			DeadLetters []json.RawMessage `json:"deadLetters"`
			Next        string            `json:"next"`
		}
		if _, err := c.deadLetterCall(ctx, http.MethodGet, "?"+values.Encode(), nil, &page); err != nil {
			return err
		}
		if !each(page.DeadLetters, page.Next != "") || page.Next == "" {
			return nil
		}
		values.Set("after", page.Next)
	}
}

// DeadLetter returns a dead letter with its body, and the JSON response.
func (c *Client) DeadLetter(ctx context.Context, queue, number string, by DeadLetterAction) (*DeadLetter, []byte, error) {
	var d DeadLetter
	text, err := c.deadLetterCall(ctx, http.MethodGet, "/"+url.PathEscape(queue)+"/"+number+"?"+by.query().Encode(), nil, &d)
	return &d, text, err
}

func (o DeadLetterAction) query() url.Values { return url.Values{"who": {o.Who}, "why": {o.Why}} }

// ActOnDeadLetter sends a dead letter again if by.IsResend is true; otherwise
// it deletes the dead letter.
func (c *Client) ActOnDeadLetter(ctx context.Context, queue, number string, by DeadLetterAction) error {
	path := "/" + url.PathEscape(queue) + "/" + number
	var err error
	if by.IsResend {
		_, err = c.deadLetterCall(ctx, http.MethodPost, path+"/resend", map[string]string{"who": by.Who, "why": by.Why}, nil)
	} else {
		_, err = c.deadLetterCall(ctx, http.MethodDelete, path+"?"+by.query().Encode(), nil, nil)
	}
	return err
}

// ActOnDeadLetters sends again or deletes all dead letters with this reason and
// with a sequence number of at most through. It calls report with the number of
// dead letters that each request processed, and returns the total.
func (c *Client) ActOnDeadLetters(ctx context.Context, queue, reason, through string, by DeadLetterAction, report func(n int)) (sum int, err error) {
	for after := "0"; ; {
		var progress struct {
			Count   int    `json:"count"`
			Next    string `json:"next"`
			Failure string `json:"failure"`
		}
		path := "/" + url.PathEscape(queue)
		if by.IsResend {
			_, err = c.deadLetterCall(ctx, http.MethodPost, path+"/resend", map[string]string{"who": by.Who, "why": by.Why, "reason": reason, "after": after, "through": through}, &progress)
		} else {
			values := by.query()
			values.Set("reason", reason)
			values.Set("after", after)
			values.Set("through", through)
			_, err = c.deadLetterCall(ctx, http.MethodDelete, path+"?"+values.Encode(), nil, &progress)
		}
		if err != nil {
			return sum, err
		}
		sum += progress.Count
		report(progress.Count)
		if progress.Failure != "" {
			return sum, fmt.Errorf("%s", progress.Failure)
		}
		if after = progress.Next; after == "" {
			return sum, nil
		}
	}
}

// DeadLetterRecords returns what operators did with a queue's dead letters, and
// the JSON response.
func (c *Client) DeadLetterRecords(ctx context.Context, queue string) ([]DeadLetterRecord, []byte, error) {
	var answer struct {
		Records []DeadLetterRecord `json:"records"`
	}
	text, err := c.deadLetterCall(ctx, http.MethodGet, "/"+url.PathEscape(queue)+"/records", nil, &answer)
	return answer.Records, text, err
}

// deadLetterCall sends a request, and decodes the response into v unless v is
// nil.
func (c *Client) deadLetterCall(ctx context.Context, method, path string, body, v any) (text []byte, err error) {
	var encoded []byte
	if body != nil {
		if encoded, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	resp, err := c.Do(ctx, method, deadLettersPath+path, "", encoded)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(resp.Body, maxDeadLetterDoc)); err != nil {
		return nil, c.Unreachable(err)
	}
	if v == nil {
		return text, nil
	}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return text, nil
}
