package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
)

// damageHeader marks a response with status 500 for a damaged file. Cosmos DB has no such header, so other clients
// ignore it.
const damageHeader = "x-messagehub-damage"

// statusRetryWith means that a write conflicted with a concurrent write and was not executed.
const statusRetryWith = 449

// errorCodes are the error codes of error bodies, by status.
var errorCodes = map[int]string{
	http.StatusBadRequest:            "BadRequest",
	http.StatusUnauthorized:          "Unauthorized",
	http.StatusForbidden:             "Forbidden",
	http.StatusNotFound:              "NotFound",
	http.StatusMethodNotAllowed:      "MethodNotAllowed",
	http.StatusRequestTimeout:        "RequestTimeout",
	http.StatusConflict:              "Conflict",
	http.StatusGone:                  "Gone",
	http.StatusPreconditionFailed:    "PreconditionFailed",
	http.StatusRequestEntityTooLarge: "RequestEntityTooLarge",
	http.StatusTooManyRequests:       "TooManyRequests",
	statusRetryWith:                  "RetryWith",
	http.StatusInternalServerError:   "InternalServerError",
	http.StatusServiceUnavailable:    "ServiceUnavailable",
}

func badRequest(format string, args ...any) error {
	return &engine.Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

func unsupportedError(format string, args ...any) error {
	return badRequest("%s is not supported by the embedded engine", fmt.Sprintf(format, args...))
}

func methodError(r *serverRequest) error {
	return &engine.Error{Status: http.StatusMethodNotAllowed, Message: r.Method + " is not possible on " + r.URL.Path}
}

// errorResponse converts an error to a response. It is the only function that assigns statuses to errors.
func errorResponse(r *serverRequest, err error) Response {
	var known *engine.Error
	var syntax *query.Error
	switch {
	case errors.As(err, &known):
	case errors.As(err, &syntax):
		known = &engine.Error{Status: http.StatusBadRequest, Message: syntax.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		known = &engine.Error{Status: http.StatusRequestTimeout, Message: "the request was cancelled before its answer was complete: " + err.Error()}
	case errors.Is(err, disk.ErrClosed):
		known = &engine.Error{Status: http.StatusServiceUnavailable, Message: err.Error()}
	case errors.Is(err, disk.ErrDamaged) && !errors.Is(err, disk.ErrBroken):
		r.answer.Set(damageHeader, "1")
		if damage, ok := errors.AsType[*engine.DamageError](err); ok && damage.Partition != "" {
			r.answer.Set("x-ms-documentdb-partitionkey", string(damage.Partition))
		}
		known = &engine.Error{Status: http.StatusInternalServerError, Message: err.Error()}
	default:
		// After a failed commit, for example, it is unknown whether the write is on disk.
		known = &engine.Error{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	if known.SubStatus != 0 {
		r.answer.Set("x-ms-substatus", strconv.Itoa(known.SubStatus))
	}
	if known.RetryAfter > 0 {
		// Round up to whole milliseconds, so that the budget is available after the delay.
		ms := (known.RetryAfter + time.Millisecond - 1) / time.Millisecond
		r.answer.Set("x-ms-retry-after-ms", strconv.FormatInt(int64(ms), 10))
	}
	if r.answer.Get("x-ms-request-charge") == "" {
		r.answer.Set("x-ms-request-charge", known.Charge.String())
	}
	if known.Status == http.StatusNotFound {
		kind, operation := describeRequest(r, known.SubStatus)
		known = &engine.Error{Status: known.Status, Message: known.Message + "; ResourceType: " + kind + ", OperationType: " + operation}
	}
	answer := map[string]string{"code": errorCodes[known.Status], "message": known.Message}
	if r.advice != "" {
		answer["additionalErrorInfo"] = r.advice
	}
	body, err := json.Marshal(answer)
	if err != nil {
		body = []byte(`{}`) // cannot happen, because strings can always be encoded
	}
	return Response{Status: known.Status, Body: body}
}

// resourceTypes maps resource types in paths to their names in error texts.
var resourceTypes = map[string]string{
	"dbs": "Database", "colls": "Collection", "docs": "Document", "pkranges": "PartitionKeyRange", "offers": "Offer",
}

// describeRequest returns the type of a missing resource and the operation, because some clients read them from the
// text of a 404.
func describeRequest(r *serverRequest, subStatus int) (kind, operation string) {
	if subStatus == ownerNotFound {
		return "Collection", "Read"
	}
	operations := map[string]string{
		http.MethodGet: "Read", http.MethodHead: "Read", http.MethodPut: "Replace", http.MethodPatch: "Patch", http.MethodDelete: "Delete", http.MethodPost: "Create",
	}
	kind, _ = signedResource(r.segments)
	operation = operations[r.Method]
	switch {
	case r.isQuery():
		operation = "Query"
	case len(r.segments)%2 == 1 && r.Method == http.MethodGet:
		operation = "ReadFeed"
	}
	return resourceTypes[kind], operation
}
