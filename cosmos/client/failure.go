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

// A Failure is an interpreted error of one request. This is the only place where a status is
// interpreted.
type Failure struct { //nolint:errname // its user asks what failed, not which error it is
	status    int           // 0: there was no answer
	missing   bool          // the database or the container does not exist
	behind    bool          // the replica is stale and cannot answer yet
	moving    bool          // writes are moving to another region
	after     time.Duration // time to wait before a retry, as requested by Cosmos
	charge    float32       // in request units; a refusal is charged, too
	operation int           // index of the failed operation of a batch, otherwise 0
	unsuited  bool          // the request was not sent, because the hub cannot work on the account
	damage    bool          // the document is damaged in the file of an embedded engine
	partition string        // the key of the damaged partition; "" if it is not known
	resume    string        // the continuation with which a query skips the damage
	err       error
}

func (f *Failure) Error() string { return f.err.Error() }
func (f *Failure) Unwrap() error { return f.err }

// Operation returns the index of the failed operation of a batch, 0 for other requests.
func (f *Failure) Operation() int { return f.operation }

// DamagedPartition returns the partition key of a damaged document, "" if it is unknown.
func (f *Failure) DamagedPartition() string { return f.partition }

// FailureOf interprets err, which is not nil.
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
		// The text of a ResponseError is a page long; the message in the body is enough.
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

// ErrPartitionFull reports that a logical partition has reached the maximum size that Cosmos permits,
// 20 GB. It is Unavailable like other refusals (403), but the account is reachable and the credential
// valid: only deletions of documents of the partition help. azcosmos does not return the substatus of
// the operations of a batch. So each 403 of an operation counts as a full partition: if the account or
// the credential were refused, the whole request would fail.
var ErrPartitionFull = errors.New("the logical partition is full; writes succeed again when documents of it are deleted")

// IsFull reports whether err means that a partition is full.
func IsFull(err error) bool { return err != nil && errors.Is(FailureOf(err), ErrPartitionFull) }

func isFull(answer *azcore.ResponseError) bool {
	return answer.StatusCode == http.StatusForbidden && answer.RawResponse != nil &&
		answer.RawResponse.Header.Get("x-ms-substatus") == substatusPartitionFull
}

// damageHeader marks an answer of an embedded engine whose file is damaged. Cosmos
// DB has no such header.
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

// messageOf returns the first line of the message in an answer.
func messageOf(e *azcore.ResponseError) string {
	if e.RawResponse == nil || e.StatusCode == http.StatusNotFound || e.StatusCode == http.StatusPreconditionFailed {
		return "" // frequent answers that need no explanation
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

// isRetriable reports whether the request may succeed if it is sent again. A write may be sent again
// although its outcome is unknown, because every write is conditional: if the first one was carried
// out, the second gets a 409 or 412, and the caller reads the document back.
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

// mayHaveHappened reports whether a write with this result may have been carried out.
func (f *Failure) mayHaveHappened() bool {
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

// mayBeContainers reports whether a container that is missing, or has other properties than the adapter
// needs, would explain the failure. A query without an index, and a document without the partition key,
// both get a plain 400.
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

// The statuses and substatuses that are specific to Cosmos.
const (
	statusRetryWith         = 449    // a concurrent write of the same document: retry
	substatusOwnerNotFound  = "1003" // with 404: the container or its database does not exist
	substatusSessionBehind  = "1002" // with 404: a replica that has not seen the session yet
	substatusWriteForbidden = "3"    // with 403: the region does not accept writes now
	substatusPartitionFull  = "1014" // with 403: the logical partition has its maximum size
)

// StatusOf returns the HTTP status that err reports, 0 if it reports none.
func StatusOf(err error) int {
	if err == nil {
		return 0
	}
	return FailureOf(err).status
}

// Classify gives err a kind by which the caller of a port can decide. Its text begins with what. It
// returns nil for a nil error.
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

// IsNotFound reports whether err means that the document does not exist, in a container that does.
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
