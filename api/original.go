package api

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
)

// The routes under /api are those of the original, the hub that this hub replaces, so that the
// original's clients work unchanged. They differ from /v1 only in how a request is read (this file,
// original_words.go) and in the format of an error (original_error.go).

// originalPrefix is the prefix of the original's paths, which may be in upper or lower case.
const originalPrefix = "/api/"

// foldOriginal accepts the paths of the original in upper and lower case, and with a trailing
// slash. It does not split a path at an escaped slash.
func foldOriginal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; len(path) >= len(originalPrefix) && strings.EqualFold(path[:len(originalPrefix)], originalPrefix) && !hasEscapedSlash(r.URL) {
			c := *r
			u := *r.URL
			u.Path = strings.TrimSuffix(strings.ToLower(path), "/")
			u.RawPath = ""
			c.URL = &u
			r = &c
		}
		next.ServeHTTP(w, r)
	})
}

// hasEscapedSlash reports whether a path contains a percent-encoded slash.
func hasEscapedSlash(u *url.URL) bool {
	return strings.Contains(strings.ToLower(u.RawPath), "%2f")
}

// originalPeek responds to a Peek of one group, or of all groups if group is "".
func (s *Server) originalPeek(group string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		req, err := originalRequest(r)
		if err != nil {
			return err
		}
		if group != "" {
			known, err := s.group(group)
			if err != nil {
				return err
			}
			req.Groups = []domain.Group{known}
		}
		return s.sendPeeked(w, r, req, 0)
	}
}

// originalDequeue confirms the bundle whose id is in the query.
func (s *Server) originalDequeue(w http.ResponseWriter, r *http.Request) error {
	noteCorrelation(r)
	text := parameter(r, "bundleId")
	id, ok := parseGUID(text)
	switch {
	case strings.TrimSpace(text) == "":
		return errNoBundleID
	case !ok:
		return errNoGUID
	}
	return s.confirm(w, r, id)
}

// originalRequest reads the parameters of a Peek. It does not support the original's parameter log,
// with which any actor could make the hub search all events.
func originalRequest(r *http.Request) (hub.PeekRequest, error) {
	noteCorrelation(r)
	req := hub.PeekRequest{
		Actor:   actorOf(r.Context()),
		Format:  originalFormat(r),
		Version: originalVersion(parameter(r, "responseversion")),
	}
	if text := parameter(r, "bundleId"); strings.TrimSpace(text) != "" {
		var ok bool
		if req.BundleID, ok = parseGUID(text); !ok {
			return req, errNoGUID
		}
	}
	return req, nil
}

// parameter returns the first value of the query parameter called name in upper or lower case, or
// "". It returns a malformed value unchanged.
func parameter(r *http.Request, name string) string {
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if strings.EqualFold(unescapeQuery(key), name) {
			return unescapeQuery(value)
		}
	}
	return ""
}

func unescapeQuery(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// noteCorrelation logs the correlation id of a request from a client of the original. A missing id
// is no error, although the original responded with 500.
func noteCorrelation(r *http.Request) {
	if id := r.Header.Get("CorrelationId"); id != "" {
		recordOf(r.Context()).note(slog.String("correlation_id", domain.Shorten(id)))
	}
}

// live reports that the process serves requests.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) error {
	return writeHealth(w, http.StatusOK, "Healthy")
}

// ready responds with the result of /readyz, in the format of the original.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if err := s.checkReadiness(r.Context()); err != nil {
		rec := recordOf(r.Context())
		rec.err, rec.problem = err, notReady
		return writeHealth(w, http.StatusServiceUnavailable, "Unhealthy")
	}
	return writeHealth(w, http.StatusOK, "Healthy")
}

func writeHealth(w http.ResponseWriter, status int, text string) error {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // Write fails if the client has disconnected
	return nil
}
