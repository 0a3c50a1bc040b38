package broker

import (
	"encoding/json"
	"net/http"
	"time"
)

// writeJSON responds with a document. Unless changed is zero, it adds the header Last-Modified.
func writeJSON(w http.ResponseWriter, status int, changed time.Time, body any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if !changed.IsZero() {
		h.Set("Last-Modified", changed.UTC().Format(http.TimeFormat))
	}
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // escaping angle brackets would enlarge payloads, which are often XML
	_ = encoder.Encode(body)     // Encode fails if the client has disconnected
}

// writeEmpty responds without a body.
func writeEmpty(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
}

// timeOrNil returns a pointer to t, or nil for the zero time.
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
