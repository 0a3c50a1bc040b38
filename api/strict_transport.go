package api

import "net/http"

// StrictTransport adds the header Strict-Transport-Security (RFC 6797) to the responses of next,
// which makes browsers use only HTTPS for this host from then on. It is for hubs that clients reach
// only over TLS.
func StrictTransport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}
