package api

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// limitRequests refuses requests of clients whose bucket is empty. If the hub has an issuer,
// authorize does this instead, after it has verified the token: an unverified request could name
// any client.
func (s *Server) limitRequests(next http.Handler) http.Handler {
	if s.requests == nil || s.opts.Identity != nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.limitRequest(w, r); err != nil {
			s.failInFormat(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// limitRequest fails if the bucket of the request's client is empty. It never fails for a probe.
func (s *Server) limitRequest(w http.ResponseWriter, r *http.Request) error {
	isResumed := recordOf(r.Context()).poll != nil // a resumed request was counted before it waited
	if s.requests == nil || isResumed || slices.Contains(polledRoutes, r.URL.Path) {
		return nil
	}
	return s.takeFrom(s.requests, w, r, 1)
}

// failInFormat responds to err in the format of the route: it calls failOriginal on routes of the
// original, and fail on all others.
func (s *Server) failInFormat(w http.ResponseWriter, r *http.Request, err error) {
	if strings.HasPrefix(r.URL.Path, "/api/") {
		s.failOriginal(w, r, err)
		return
	}
	s.fail(w, r, err)
}

// limitEvents takes n tokens for events from the bucket of the request's client. It fails if there
// are too few.
func (s *Server) limitEvents(w http.ResponseWriter, r *http.Request, n int) error {
	if s.events == nil {
		return nil
	}
	return s.takeFrom(s.events, w, r, n)
}

// takeFrom takes n tokens from the bucket of the request's client, and sets the rate limit headers
// (draft-ietf-httpapi-ratelimit-headers). It fails if there are fewer than n tokens.
func (s *Server) takeFrom(b *buckets, w http.ResponseWriter, r *http.Request, n int) error {
	left, pause := b.take(s.clientOf(r), n, s.opts.Clock())
	seconds := strconv.Itoa(int(math.Ceil(pause.Seconds())))
	w.Header().Add("RateLimit-Policy", b.policy)
	w.Header().Add("RateLimit", fmt.Sprintf("%q;r=%d;t=%s", b.unit, left, seconds))
	if pause == 0 {
		return nil
	}
	s.metrics.rateLimited.WithLabelValues(b.unit).Inc()
	w.Header().Set("Retry-After", seconds)
	return refuse(tooManyRequests, "This client has sent more than %d %s a second. Nothing of this request was stored; repeat it after the pause.", int(b.rate), b.unit)
}

// clientOf returns the client whose buckets a request uses: the client of its token. If the hub has
// no issuer, this is the actor that the request names or, if it names none, the address.
func (s *Server) clientOf(r *http.Request) string {
	if p := principalOf(r.Context()); p != nil {
		return "client " + p.Issuer + " " + cmp.Or(p.Client, p.Subject)
	}
	if s.opts.Identity != nil {
		return "address " + s.addressOf(r)
	}
	if values := r.Header[actorHeader]; len(values) == 1 {
		if actor, err := domain.ParseActorID(values[0]); err == nil {
			return "actor " + actor.String()
		}
	}
	return "address " + s.addressOf(r)
}

// pauseUntil returns the time until a bucket that contains the given tokens contains n tokens.
func pauseUntil(n, tokens, rate float64) time.Duration {
	return time.Duration(math.Ceil((n - tokens) / rate * float64(time.Second)))
}
