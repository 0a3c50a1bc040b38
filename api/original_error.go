package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/domain/hub"
)

// original converts h to an http.HandlerFunc, which responds to an error of h as the original does.
func (s *Server) original(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.failOriginal(w, r, err)
		}
	}
}

// failOriginal responds to err in the format of the original. It logs and counts the problem for
// err, but sends an error that clients of the original know.
func (s *Server) failOriginal(w http.ResponseWriter, r *http.Request, err error) {
	refused := recordError(r.Context(), err)
	w.Header().Set("Cache-Control", "no-store")
	if problems[refused.problem].retry {
		w.Header().Set("Retry-After", pauseAfter(refused.problem))
	}
	if errors.Is(err, hub.ErrOutpaced) {
		w.WriteHeader(http.StatusNoContent) // the original responded with 204 if a client lost a race
		return
	}
	if refused.problem == contentGone || isUnanswered(err) {
		w.WriteHeader(http.StatusNoContent) // the original responded with 204 if the domain failed or did not reply
		return
	}
	switch refused.problem {
	case missingActor, invalidActor:
		w.WriteHeader(http.StatusUnauthorized)
	case invalidToken, missingRight, notFound, unknownGroup, preconditionFailed, noRange:
		w.WriteHeader(problems[refused.problem].status)
	case invalid, conflict:
		writeOriginalError(w, r, http.StatusBadRequest, asOriginalError(refused))
	case busy, tooManyRequests:
		writeOriginalError(w, r, http.StatusInternalServerError, originalError{Code: "INTERNAL_ERROR", Message: "TMR"})
	default:
		writeOriginalError(w, r, http.StatusInternalServerError,
			originalError{Code: "INTERNAL_ERROR", Message: "An error occured while processing the request."}) //nolint:misspell // as the original has it
	}
}

func isUnanswered(err error) bool {
	_, ok := errors.AsType[*hub.UnansweredError](err)
	return ok
}

// An originalError is an error in the format of the original. Its JSON follows the OData
// convention.
type originalError struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Target  string          `json:"target,omitempty"`
	Details []originalError `json:"details,omitempty"`
}

func (e originalError) Error() string { return e.Message }

// Errors with which the original refused a request before it changed anything.
var (
	errNoGUID     = inDetail(notGUID())
	errNoBundleID = inDetail(originalError{Code: "value_not_specified", Message: "'Bundle Id' must not be empty.", Target: "BundleId"}, notGUID())
)

func notGUID() originalError {
	return originalError{Code: "invalid_UUID", Message: "'Bundle Id' must have a valid guid.", Target: "BundleId"}
}

func inDetail(details ...originalError) error {
	return &problemError{
		problem: invalid,
		detail:  details[0].Message,
		cause:   originalError{Code: "VALIDATION_EXCEPTION", Message: "See details", Details: details},
	}
}

// asOriginalError returns the original's error that corresponds to a problem.
func asOriginalError(refused *problemError) originalError {
	if e, ok := errors.AsType[originalError](refused.cause); ok {
		return e
	}
	e := originalError{Code: "VALIDATION_EXCEPTION", Message: refused.detail}
	if errors.Is(refused.cause, hub.ErrBundleIDInUse) {
		e.Message = "BundleIdAlreadyInUse"
	}
	return e
}

// writeOriginalError responds in XML if the Content-Type of the request is XML, even if the request
// has no body.
func writeOriginalError(w http.ResponseWriter, r *http.Request, status int, e originalError) {
	contentType, body := "application/json", []byte(nil)
	if strings.EqualFold(strings.TrimSpace(r.Header.Get("Content-Type")), "application/xml") {
		contentType, body = "application/xml", e.appendXML([]byte(`<?xml version="1.0" encoding="utf-8"?>`))
	} else {
		body, _ = json.Marshal(map[string]originalError{"error": e}) // strings only
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // Write fails if the client has disconnected
}

// xmlEscaper escapes the special characters in the text of an element. The messages are printable,
// because they quote requests as Go strings.
var xmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (e originalError) appendXML(b []byte) []byte {
	element := func(name, text string) {
		b = append(b, "<"+name+">"+xmlEscaper.Replace(text)+"</"+name+">"...)
	}
	b = append(b, "<Error>"...)
	element("Code", e.Code)
	element("Message", e.Message)
	if e.Target != "" {
		element("Target", e.Target)
	}
	if len(e.Details) > 0 {
		b = append(b, "<Details>"...)
		for _, d := range e.Details {
			b = d.appendXML(b)
		}
		b = append(b, "</Details>"...)
	}
	return append(b, "</Error>"...)
}
