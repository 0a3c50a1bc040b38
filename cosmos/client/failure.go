package client

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

// A Failure is the interpreted error of one request. Statuses are interpreted only in this file.
type Failure struct { //nolint:errname // its user asks what failed, not which error it is
	status    int           // HTTP status; 0: no response was received
	missing   bool          // the database or the container does not exist
	behind    bool          // the replica is stale and cannot serve the request yet
	moving    bool          // the write region is changing
	after     time.Duration // time to wait before a retry, as requested by Cosmos
	charge    float32       // charge in request units; Cosmos charges for refused requests, too
	operation int           // index of the failed operation of a batch; 0 for other requests
	unsuited  bool          // the request was not sent, because the account has several write regions
	damage    bool          // the document is damaged in the file of an embedded engine
	partition string        // the key of the damaged partition; "" if it is not known
	resume    string        // continuation token with which a query continues after the damaged document
	err       error
}

func (f *Failure) Error() string { return f.err.Error() }
func (f *Failure) Unwrap() error { return f.err }

// Operation returns the index of the failed operation of a batch, 0 for other requests.
func (f *Failure) Operation() int { return f.operation }

// DamagedPartition returns the partition key of a damaged document, "" if it is unknown.
func (f *Failure) DamagedPartition() string { return f.partition }

// FailureOf interprets err, which must not be nil.
func FailureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	f := &Failure{err: err, unsuited: errors.Is(err, errSeveralWriteRegions)}
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
		// The text of a ResponseError is a page long, so the error contains only the message of the body.
		f.err = fmt.Errorf("cosmos answered %d %s%s (activity %s)", f.status, http.StatusText(f.status), messageOf(answer), activityOf(answer))
		if isFull(answer) {
			f.err = fmt.Errorf("%w: %w", ErrPartitionFull, f.err)
		}
		if f.missing {
			f.err = fmt.Errorf("the container or its database is not there; create it first: %w", f.err)
		}
	}
	return f
}

// ErrPartitionFull reports that a logical partition has reached 20 GB, the maximum size that Cosmos
// permits. Its kind is Unavailable, as for every 403, but only the deletion of documents in the
// partition helps. azcosmos does not return the substatus of the operations of a batch, so each 403 of
// an operation counts as a full partition. A refused credential cannot cause such a 403, because the
// whole request would fail.
var ErrPartitionFull = errors.New("the logical partition is full; writes succeed again when documents of it are deleted")

// IsFull reports whether err means that a partition is full.
func IsFull(err error) bool { return err != nil && errors.Is(FailureOf(err), ErrPartitionFull) }

func isFull(answer *azcore.ResponseError) bool {
	return answer.StatusCode == http.StatusForbidden && answer.RawResponse != nil &&
		answer.RawResponse.Header.Get("x-ms-substatus") == substatusPartitionFull
}

// damageHeader marks a response of an embedded engine whose file is damaged. Cosmos DB does not send
// this header.
const damageHeader = "x-messagehub-damage"

// readDamage reads the headers about a damaged file of an embedded engine.
func (f *Failure) readDamage(h http.Header) {
	if f.status != http.StatusInternalServerError || h.Get(damageHeader) == "" {
		return
	}
	f.damage, f.resume = true, h.Get("x-ms-continuation")
	var key []string
	if json.Unmarshal([]byte(h.Get("x-ms-documentdb-partitionkey")), &key) == nil && len(key) == 1 {
		f.partition = key[0]
	}
}

// messageOf returns the first line of the message in a response.
func messageOf(e *azcore.ResponseError) string {
	if e.RawResponse == nil || e.StatusCode == http.StatusNotFound || e.StatusCode == http.StatusPreconditionFailed {
		return "" // these statuses are frequent and need no message
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

// isRetriable reports whether the request may succeed if it is sent again. A write with an unknown
// outcome can be sent again, because every write is conditional: if the first attempt was applied, the
// second fails with 409 or 412, and the caller reads the document back.
func (f *Failure) isRetriable() bool {
	if f.behind || f.moving {
		return true
	}
	if f.damage || f.unsuited {
		return false
	}
	switch f.status {
	case 0, http.StatusRequestTimeout, http.StatusGone, http.StatusTooManyRequests, statusRetryWith,
		http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// mayBeApplied reports whether a write with this result may have been applied.
func (f *Failure) mayBeApplied() bool {
	if f.unsuited {
		return false
	}
	switch f.status {
	case 0, http.StatusRequestTimeout, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// mayBeContainers reports whether a container that is missing or has wrong properties would explain the
// failure. A query without an index fails with a plain 400, and so does a document without the
// partition key.
func (f *Failure) mayBeContainers() bool {
	return f.missing || f.status == http.StatusBadRequest
}

// domainKind returns the kind by which the caller of a port decides.
func (f *Failure) domainKind() domain.Kind {
	switch {
	case f.damage:
		return domain.Damaged
	case f.unsuited:
		return domain.Unavailable
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
	if f.isRetriable() {
		return domain.Unavailable
	}
	return domain.Unknown
}

// Statuses and substatuses that are specific to Cosmos.
const (
	statusRetryWith         = 449    // a concurrent write of the same document: retry
	substatusOwnerNotFound  = "1003" // with 404: the container or its database does not exist
	substatusSessionBehind  = "1002" // with 404: the replica lacks the writes of the session
	substatusWriteForbidden = "3"    // with 403: the region does not accept writes now
	substatusPartitionFull  = "1014" // with 403: the logical partition has reached the maximum size
)

// StatusOf returns the HTTP status of err, or 0 if err has no status.
func StatusOf(err error) int {
	if err == nil {
		return 0
	}
	return FailureOf(err).status
}

// Classify returns err with a kind by which the caller of a port can decide, and with the prefix what.
// It returns nil for a nil error.
func Classify(what string, err error) error {
	if err == nil {
		return nil
	}
	if domain.KindOf(err) != domain.Unknown {
		return fmt.Errorf("%s: %w", what, err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return domain.Errorf(domain.Unavailable, "%s: %w", what, err)
	}
	f := FailureOf(err)
	return domain.Errorf(f.domainKind(), "%s: %w", what, f)
}

// IsNotFound reports whether err means that the document does not exist. For a missing container it
// returns false.
func IsNotFound(err error) bool {
	if err == nil {
		return false
	}
	f := FailureOf(err)
	return f.status == http.StatusNotFound && !f.missing && !f.behind
}

// IsRefused reports whether a conditional write was refused (404, 409 or 412). That is
// ambiguous: an earlier attempt of the same write may have succeeded. So the caller reads
// the document back and compares the id of its last write.
func IsRefused(err error) bool {
	if err == nil {
		return false
	}
	switch StatusOf(err) {
	case http.StatusConflict, http.StatusPreconditionFailed:
		return true
	}
	return IsNotFound(err)
}
