package broker

import (
	"encoding/json"
	"net/http"
	"time"
)

// writeJSON responds with a document, and with the time of its last change unless that time is
// zero.
func writeJSON(w http.ResponseWriter, status int, changed time.Time, body any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if !changed.IsZero() {
		h.Set("Last-Modified", changed.UTC().Format(http.TimeFormat))
	}
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // payloads are often XML, whose brackets need no escapes
	_ = encoder.Encode(body)     // fails if the client has disconnected
}

// writeEmpty responds without a body.
func writeEmpty(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

// timeOrNil returns nil for the zero time.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
