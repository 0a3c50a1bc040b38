package api

import "net/http"

// StrictTransport adds to the answers of next the header by which browsers use
// only HTTPS for this host from then on (RFC 6797). It is for hubs that clients
// reach over TLS only.
func StrictTransport(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
		next.ServeHTTP(w, r)
	})
}
