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

// damageHeader marks a 500 whose cause is a damaged file. Cosmos DB has no such
// header: clients that do not know it see a 500.
const damageHeader = "x-messagehub-damage"

// statusRetryWith tells that a write met another one; it was not done.
const statusRetryWith = 449

// errorCodes are the names that go into an error body.
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

// errorResponse is the one table from error to status.
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
		// Among these is a failed commit: the write may be on disk or not.
		known = &engine.Error{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	if known.SubStatus != 0 {
		r.answer.Set("x-ms-substatus", strconv.Itoa(known.SubStatus))
	}
	if known.RetryAfter > 0 {
		// Whole milliseconds, upwards: a client that waits as told finds budget.
		ms := (known.RetryAfter + time.Millisecond - 1) / time.Millisecond
		r.answer.Set("x-ms-retry-after-ms", strconv.FormatInt(int64(ms), 10))
	}
	if r.answer.Get("x-ms-request-charge") == "" {
		r.answer.Set("x-ms-request-charge", known.Charge.String())
	}
	answer := map[string]string{"code": errorCodes[known.Status], "message": known.Message}
	if r.advice != "" {
		answer["additionalErrorInfo"] = r.advice
	}
	body, err := json.Marshal(answer)
	if err != nil {
		body = []byte(`{}`) // cannot happen: strings always marshal
	}
	return Response{Status: known.Status, Body: body}
}
