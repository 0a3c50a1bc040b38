package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/messagehub/messagehub/domain"
)

// A failure is what one call to Cosmos came to, in the terms in which this
// package decides. It is the only place where a status is interpreted.
type failure struct {
	status    int           // 0: no answer at all
	missing   bool          // it is the database or the container that is not there
	behind    bool          // the replica that was asked has not heard enough to answer
	moving    bool          // writes are moving to another region
	after     time.Duration // how long Cosmos asks to wait
	charge    float32       // a refusal has its price, too
	operation int           // which operation of a batch failed, else 0
	damage    bool          // the file of an embedded engine is damaged there
	partition string        // the key of the damaged partition; "" if it is not known
	resume    string        // the continuation of a query that leads past the damage
	err       error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// failureOf interprets err, which is not nil.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	f := &failure{err: err}
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
		f.status = answer.StatusCode
		if answer.RawResponse != nil {
			ms, _ := strconv.Atoi(answer.RawResponse.Header.Get("x-ms-retry-after-ms"))
			substatus := answer.RawResponse.Header.Get("x-ms-substatus")
			f.missing = f.status == http.StatusNotFound && substatus == substatusOwnerNotFound
			f.behind = f.status == http.StatusNotFound && substatus == substatusSessionBehind
			f.moving = f.status == http.StatusForbidden && substatus == substatusWriteForbidden
			f.after = time.Duration(ms) * time.Millisecond
			charge, _ := strconv.ParseFloat(answer.RawResponse.Header.Get("x-ms-request-charge"), 32)
			f.charge = float32(charge)
			f.readDamage(answer.RawResponse.Header)
		}
		// The text of a ResponseError is a page long; what the body says is enough.
		f.err = fmt.Errorf("cosmos answered %d %s%s (activity %s)", f.status, http.StatusText(f.status), messageOf(answer), activityOf(answer))
		if f.missing {
			f.err = fmt.Errorf("the container or its database is not there; create it first: %w", f.err)
		}
	}
	return f
}

// damageHeader marks an answer of an embedded engine whose file is damaged. Cosmos
// DB has no such header.
const damageHeader = "x-messagehub-damage"

// readDamage reads what an embedded engine says of its damaged file.
func (f *failure) readDamage(h http.Header) {
	if f.status != http.StatusInternalServerError || h.Get(damageHeader) == "" {
		return
	}
	f.damage, f.resume = true, h.Get("x-ms-continuation")
	var key []string
	if json.Unmarshal([]byte(h.Get("x-ms-documentdb-partitionkey")), &key) == nil && len(key) == 1 {
		f.partition = key[0]
	}
}

// messageOf returns what Cosmos says about its answer, the first line of it.
func messageOf(e *azcore.ResponseError) string {
	if e.RawResponse == nil || e.StatusCode == http.StatusNotFound || e.StatusCode == http.StatusPreconditionFailed {
		return "" // everyday answers, which need no words
	}
	body, err := runtime.Payload(e.RawResponse)
	var answer struct {
		Message string `json:"message"`
	}
	if err != nil || json.Unmarshal(body, &answer) != nil || answer.Message == "" {
		return ""
	}
	line, _, _ := strings.Cut(answer.Message, "\n")
	return ": " + line[:min(len(line), 300)]
}

func activityOf(e *azcore.ResponseError) string {
	if e.RawResponse == nil {
		return "unknown"
	}
	return e.RawResponse.Header.Get("x-ms-activity-id")
}

// retriable reports whether the same call, sent again, may fare better. A
// write may be sent again although its outcome is unknown, because every write
// here is conditional: if the first one was carried out, the second meets 409 or
// 412, which is a question to be answered by reading back.
func (f *failure) retriable() bool {
	if f.behind || f.moving {
		return true
	}
	if f.damage {
		return false
	}
	switch f.status {
	case 0, http.StatusRequestTimeout, http.StatusGone, http.StatusTooManyRequests, statusRetryWith,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// happened reports whether a write that ended like this may have been carried out.
func (f *failure) happened() bool {
	switch f.status {
	case 0, http.StatusRequestTimeout, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// mayBeContainers reports whether a container that is missing, or has other
// properties than the hub needs, would explain the failure. A query that lacks an
// index and a document without the partition key are both a plain 400.
func (f *failure) mayBeContainers() bool {
	return f.missing || f.status == http.StatusBadRequest
}

// kind says what a caller of the port can do.
func (f *failure) kind() domain.Kind {
	if f.damage {
		return domain.Damaged
	}
	switch f.status {
	case http.StatusNotFound:
		if f.missing || f.behind {
			return domain.Unavailable
		}
		return domain.NotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return domain.Conflict
	case http.StatusTooManyRequests, statusRetryWith:
		return domain.Busy
	case http.StatusUnauthorized, http.StatusForbidden:
		return domain.Unavailable
	}
	if f.retriable() {
		return domain.Unavailable
	}
	return domain.Unknown
}

// What Cosmos says beyond HTTP.
const (
	statusRetryWith         = 449    // a concurrent write of the same document, try again
	substatusOwnerNotFound  = "1003" // with 404: the container or its database is not there
	substatusSessionBehind  = "1002" // with 404: a replica that has not seen the session yet
	substatusWriteForbidden = "3"    // with 403: a region that takes no writes now
)

// statusOf returns the HTTP status that err reports, 0 if it reports none.
func statusOf(err error) int {
	if err == nil {
		return 0
	}
	return failureOf(err).status
}

// classified gives err the kind that a caller of a port can act on.
func classified(what string, err error) error {
	if err == nil {
		return nil
	}
	if domain.KindOf(err) != domain.Unknown {
		return fmt.Errorf("%s: %w", what, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return domain.Errorf(domain.Unavailable, "%s: %w", what, err)
	}
	f := failureOf(err)
	return domain.Errorf(f.kind(), "%s: %w", what, f)
}

// isNotFound reports that a document is not there, though its container is.
func isNotFound(err error) bool {
	if err == nil {
		return false
	}
	f := failureOf(err)
	return f.status == http.StatusNotFound && !f.missing && !f.behind
}

// isRefused reports that a condition of a write did not hold, or seemed not to:
// it may have been the write itself that changed what it was conditional on.
func isRefused(err error) bool {
	if err == nil {
		return false
	}
	switch statusOf(err) {
	case http.StatusConflict, http.StatusPreconditionFailed:
		return true
	}
	return isNotFound(err)
}
