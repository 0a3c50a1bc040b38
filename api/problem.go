package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/deadletters"
	"github.com/messagehub/messagehub/domain/hub"
)

// A problemType is a kind of failure, as clients see it. It is the last part of the URI in the
// problem's type, and its meaning never changes.
type problemType string

const (
	invalid            problemType = "invalid"
	notJSON            problemType = "not-json"
	bodyCut            problemType = "body-cut"
	invalidActor       problemType = "invalid-actor"
	missingActor       problemType = "missing-actor"
	missingToken       problemType = "missing-token"
	adminClosed        problemType = "admin-closed"
	tooManyLogins      problemType = "too-many-logins"
	tooManyRequests    problemType = "too-many-requests"
	noRoute            problemType = "no-such-route"
	unknownGroup       problemType = "unknown-group"
	notFound           problemType = "not-found"
	wrongMethod        problemType = "method-not-allowed"
	bodySlow           problemType = "body-too-slow"
	conflict           problemType = "conflict"
	idConflict         problemType = "id-conflict"
	alreadyStored      problemType = "already-stored"
	preconditionFailed problemType = "precondition-failed"
	bodyTooLarge       problemType = "body-too-large"
	tooManyEvents      problemType = "too-many-events"
	wrongContentType   problemType = "unsupported-media-type"
	noRange            problemType = "range-not-satisfiable"
	busy               problemType = "busy"
	uncertain          problemType = "uncertain"
	unavailable        problemType = "unavailable"
	tooLate            problemType = "deadline-exceeded"
	noAnswer           problemType = "no-answer"
	domainFailed       problemType = "domain-failed"
	contentGone        problemType = "content-gone"
	frozen             problemType = "frozen"
	notReady           problemType = "not-ready"
	newerFormat        problemType = "newer-format"
	damaged            problemType = "damaged"
	internal           problemType = "internal"

	busUnavailable  problemType = "bus-unavailable"
	resendUncertain problemType = "resend-uncertain"

	crawlUnderWay     problemType = "crawl-under-way"
	unsupportedFormat problemType = "unsupported-format"

	notProvisioned       problemType = "not-provisioned"
	tooManySubscriptions problemType = "too-many-subscriptions"
	tooManyTests         problemType = "too-many-tests"
	partitionFull        problemType = "partition-full"

	missingCredentials problemType = "missing-credentials"
	wrongCredentials   problemType = "wrong-credentials" //nolint:gosec // a name

	invalidToken      problemType = "invalid-token"
	missingRight      problemType = "missing-right"
	issuerUnavailable problemType = "issuer-unavailable"
)

// problems is the table of all problems. A row has a detail if clients cannot cause the problem:
// the client receives this detail, and the error itself is only logged.
var problems = map[problemType]struct {
	status int
	title  string
	retry  bool // whether repeating the request after Retry-After may succeed
	pause  int  // value of Retry-After in seconds; 0 means 1
	detail string
}{
	invalid:            {status: 400, title: "The request is not valid"},
	notJSON:            {status: 400, title: "The body is not the expected JSON"},
	bodyCut:            {status: 400, title: "The body ended early"},
	invalidActor:       {status: 400, title: "The actor id is not valid"},
	missingActor:       {status: 401, title: "The request names no actor"},
	missingToken:       {status: 401, title: "The operator's token is missing or wrong"},
	adminClosed:        {status: 403, title: "The operators' routes are closed"},
	tooManyLogins:      {status: 429, title: "Too many failed logins"},
	tooManyRequests:    {status: 429, title: "Too many requests"},
	noRoute:            {status: 404, title: "No such route"},
	unknownGroup:       {status: 404, title: "No such group"},
	notFound:           {status: 404, title: "Not found"},
	wrongMethod:        {status: 405, title: "Method not allowed"},
	bodySlow:           {status: 408, title: "The body arrived too slowly"},
	conflict:           {status: 409, title: "The request conflicts with the current state"},
	idConflict:         {status: 409, title: "One id is used for different contents"},
	alreadyStored:      {status: 409, title: "Events are stored with other content"},
	unsupportedFormat:  {status: 400, title: "The format of the files is not supported"},
	crawlUnderWay:      {status: 409, title: "A crawl of the bucket is under way"},
	preconditionFailed: {status: 412, title: "A precondition is not met"},
	bodyTooLarge:       {status: 413, title: "The body is too large"},
	tooManyEvents:      {status: 413, title: "Too many events in one request"},
	wrongContentType:   {status: 415, title: "Unsupported media type"},
	noRange:            {status: 416, title: "No such range"},
	busy: {
		status: 429, title: "Too busy", retry: true,
		detail: "The hub or its store is at a limit. Nothing is lost; repeat the same request after a pause.",
	},
	uncertain: {
		status: 503, title: "The outcome is not known", retry: true,
		detail: "The request may or may not have taken effect. Repeat the same request after the pause, which is safe.",
	},
	unavailable: {
		status: 503, title: "The store is unavailable", retry: true,
		detail: "The request has not taken effect. Repeat the same request after a pause.",
	},
	busUnavailable: {
		status: 503, title: "Service Bus is unavailable", retry: true, pause: 10,
		detail: "The request has not taken effect, because Service Bus does not respond. Repeat the same request after the pause.",
	},
	resendUncertain: {
		status: 503, title: "It is not known whether the dead letter was sent again", retry: true, pause: 60,
		detail: "A copy may be in the queue while the dead letter still exists. List the dead letters before you repeat the request.",
	},
	tooLate: {
		status: 503, title: "No response in time", retry: true,
		detail: "The request was cancelled at its deadline, and may or may not have taken effect. Repeat the same request after the pause, which is safe.",
	},
	noAnswer: {
		status: 503, title: "The domain has not replied in time", retry: true,
		detail: "The bundle stays open. Peek again after the pause: the hub then asks the domain again.",
	},
	domainFailed: {
		status: 503, title: "The domain could not produce the content", retry: true, pause: 10,
		detail: "The bundle stays open. Peek again after the pause: the hub then asks the domain again; if this repeats for an hour, inform the operator.",
	},
	contentGone: {
		status: 503, title: "The content of the bundle was deleted", retry: true,
		detail: "The bundle stays open. Peek again after the pause: the hub then asks the domain for the content again.",
	},
	frozen: {
		status: 503, title: "The queue is frozen", retry: true, pause: 30,
		detail: "An operator has stopped deliveries to this actor for a time. New events are stored, and nothing is lost; repeat the same request after the pause.",
	},
	notReady: {
		status: 503, title: "Not ready", retry: true,
		detail: "A service that the hub needs does not work; the log of the hub has the reason.",
	},
	tooManySubscriptions: {status: 406, title: "Too many subscriptions"},
	tooManyTests:         {status: 429, title: "Too many test calls"},
	missingCredentials:   {status: 401, title: "The request has no credentials"},
	wrongCredentials:     {status: 403, title: "The credentials are wrong"},
	invalidToken:         {status: 401, title: "The token is missing or not valid"},
	missingRight:         {status: 403, title: "The sender of the request lacks a right"},
	issuerUnavailable: {
		status: 503, title: "The issuer of the token is unavailable", retry: true, pause: 30,
		detail: "The hub cannot fetch the keys of the issuer, so it cannot check the token. The request has not taken effect; repeat it after the pause.",
	},
	notProvisioned: {
		status: 503, title: "A container of the store is not provisioned", retry: true, pause: 30,
		detail: "The store of this hub lacks the containers that this route needs; the operator creates them with messagehub provision. Other routes work.",
	},
	partitionFull: {
		status: 503, title: "The store has no room for the object", retry: true, pause: 300,
		detail: "The partition of an object of the request is full, so the events of this object are not stored. The other events are stored. Inform the operator, and repeat the request after objects of that partition are deleted.",
	},
	newerFormat: {
		status: 503, title: "The mailbox has a newer format", retry: true, pause: 5,
		detail: "A newer version of the hub has stored this mailbox in a format that this node does not know. Nothing is lost; repeat the same request after the pause, until a node of the newer version processes it.",
	},
	damaged: {
		status: 500, title: "Stored data is damaged",
		detail: "The stored data contradicts itself. Repeating the request does not help; give the operator the request id.",
	},
	internal: {
		status: 500, title: "Internal error",
		detail: "The hub failed unexpectedly. Give the operator the request id.",
	},
}

// problemOfKind maps the kinds of errors from the domain packages and the stores to problems.
var problemOfKind = map[domain.Kind]problemType{
	domain.Unknown:     internal,
	domain.Invalid:     invalid,
	domain.NotFound:    notFound,
	domain.Conflict:    conflict,
	domain.Busy:        busy,
	domain.Uncertain:   uncertain,
	domain.Unavailable: unavailable,
	domain.Damaged:     damaged,
	domain.NewerFormat: newerFormat,
}

// A problemError is an error that describes its problem completely. Handlers return it if the kind
// of an error does not suffice.
type problemError struct {
	problem problemType
	detail  string // text for the client
	faults  []bodyFault
	stored  *counts // numbers of the stored events
	checks  []FailedCheck
	looked  *searchedDocument // extent of a search without a result
	close   bool              // whether the connection is closed, instead of reading the rest of the body
	cause   error             // error that is logged
}

// A bodyFault describes a fault at one position of a request's body.
type bodyFault struct {
	Pointer string `json:"pointer"` // RFC 6901
	Detail  string `json:"detail"`

	index  int // index of the faulty event
	inside int // length of the part of Pointer that lies inside a payload, at its end
}

// logText returns the text of the fault for the log. It omits names inside a payload, because they
// are data.
func (f *bodyFault) logText() string { return f.Pointer[:len(f.Pointer)-f.inside] + ": " + f.Detail }

// counts are members of a response to POST /v1/data-available: the numbers of stored events.
type counts struct {
	Accepted   int `json:"accepted"`
	Duplicates int `json:"duplicates"`
}

// refuse returns an error that becomes a problem of type p.
func refuse(p problemType, format string, args ...any) error {
	return &problemError{problem: p, detail: fmt.Sprintf(format, args...)}
}

func (r *problemError) Error() string {
	text := string(r.problem)
	switch {
	case r.cause != nil:
		return text + ": " + r.cause.Error()
	case len(r.faults) > 0:
		return text + ": " + r.faults[0].logText()
	case r.detail != "":
		return text + ": " + r.detail
	}
	return text
}

func (r *problemError) Unwrap() error { return r.cause }

// asProblem returns the problem that the client receives for err. If the request did not cause err,
// the problem describes err only in general words.
func asProblem(ctx context.Context, err error) *problemError {
	if r, ok := errors.AsType[*problemError](err); ok {
		return r
	}
	if errors.Is(err, hub.ErrFrozen) {
		return &problemError{problem: frozen, cause: err}
	}
	if e, ok := errors.AsType[*hub.UnansweredError](err); ok {
		return unansweredProblem(e)
	}
	if _, ok := errors.AsType[*hub.ContentGoneError](err); ok {
		return &problemError{problem: contentGone, cause: err}
	}
	if e, ok := errors.AsType[*deadletters.BusError](err); ok {
		return busProblemOf(e)
	}
	kind := domain.KindOf(err)
	late := errors.Is(context.Cause(ctx), errDeadline) || kind == domain.Unknown && errors.Is(err, context.DeadlineExceeded)
	if late && kind != domain.Invalid && kind != domain.Damaged && kind != domain.NewerFormat {
		return &problemError{problem: tooLate, cause: err}
	}
	p, ok := problemOfKind[kind]
	if !ok {
		p = internal
	}
	r := &problemError{problem: p, cause: err}
	if problems[r.problem].detail == "" {
		if classified, ok := errors.AsType[*domain.Error](err); ok {
			r.detail = classified.Error()
		}
	}
	return r
}

// unansweredProblem returns a problem that names the waiting bundle, its domain, and the reason in
// one word. The text from the domain is only logged.
func unansweredProblem(e *hub.UnansweredError) *problemError {
	b := &e.Bundle
	if b.ContentFailure.Reason == hub.NoAnswer {
		return &problemError{problem: noAnswer, cause: e, detail: fmt.Sprintf(
			"Bundle %s is open, and domain %s has not produced its content in time. Peek again after the pause.", b.ID, b.Cabinet.Origin)}
	}
	return &problemError{problem: domainFailed, cause: e, detail: fmt.Sprintf(
		"Bundle %s is open, and domain %s could not produce its content (%s). Peek again after the pause; if this repeats for an hour, inform the operator.",
		b.ID, b.Cabinet.Origin, b.ContentFailure.Reason)}
}

// A problemDocument is the JSON of a problem (RFC 9457).
type problemDocument struct {
	Type     string            `json:"type"`
	Title    string            `json:"title"`
	Status   int               `json:"status"`
	Detail   string            `json:"detail"`
	Instance string            `json:"instance"`
	Errors   []bodyFault       `json:"errors,omitempty"`
	Checks   []FailedCheck     `json:"checks,omitempty"`
	Looked   *searchedDocument `json:"looked,omitempty"`
	*counts
}

// writeProblem responds with r as a problem document.
func writeProblem(w http.ResponseWriter, requestID string, r *problemError) {
	row := problems[r.problem]
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	prepareProblem(w, r)
	w.WriteHeader(row.status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(documentOf(requestID, r)) // Encode fails if the client has disconnected
}

// prepareProblem sets the headers of a response to r, except those that describe the body.
func prepareProblem(w http.ResponseWriter, r *problemError) {
	if r.close {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // with this deadline, net/http does not wait for the rest of the body
	}
	if problems[r.problem].retry {
		w.Header().Set("Retry-After", pauseAfter(r.problem))
	}
}

// pauseAfter returns the number of seconds that a client should wait after a problem.
func pauseAfter(p problemType) string { return strconv.Itoa(max(1, problems[p].pause)) }

func documentOf(requestID string, r *problemError) problemDocument {
	row := problems[r.problem]
	detail := r.detail
	if detail == "" {
		detail = row.detail
	}
	return problemDocument{
		Type:     "urn:messagehub:problem:" + string(r.problem),
		Title:    row.title,
		Status:   row.status,
		Detail:   detail,
		Instance: "urn:messagehub:request:" + requestID,
		Errors:   r.faults,
		Checks:   r.checks,
		Looked:   r.looked,
		counts:   r.stored,
	}
}

func joinWords(words []string) string { return strings.Join(words, ", ") }
