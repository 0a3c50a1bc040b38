package api

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// localOnly refuses requests from other machines: requests whose Host is not this machine, and
// requests that a proxy has forwarded.
//
// Checking the Host prevents DNS rebinding, in which the domain of a web page resolves to a
// loopback address. A hub that trusts the X-Actor-Id of every client is safe only if no other
// machine can reach it, even through a proxy.
func (s *Server) localOnly(isOwnHost func(host string) bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		if isOwnHost == nil && !s.opts.NoProxies {
			return next
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := s.checkLocal(r, isOwnHost); err != nil {
				s.fail(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func (s *Server) checkLocal(r *http.Request, isOwnHost func(host string) bool) error {
	if isOwnHost != nil && !isOwnHost(r.Host) {
		return refuse(invalid, "This hub serves this machine only, by the names localhost and 127.0.0.1, not by %q. A proxy in front of it has to send one of these as Host.", domain.Shorten(r.Host))
	}
	if header := proxyHeader(r.Header); s.opts.NoProxies && header != "" {
		return refuse(invalid, "The request has the header %s, so a proxy has passed it on, and this hub takes requests from this machine only. "+
			"Call the hub directly, or start it with --insecure behind a proxy that authenticates actors and sets X-Actor-Id itself; messagehub help security says what such a proxy has to do.", domain.Shorten(header))
	}
	return nil
}

// proxyHeader returns the name of a header that only proxies add to requests, or "" if the request
// contains none.
func proxyHeader(h http.Header) string {
	for _, name := range [...]string{"Forwarded", "Via"} {
		if _, ok := h[name]; ok {
			return name
		}
	}
	first := ""
	for name := range h {
		if strings.HasPrefix(name, "X-Forwarded-") && (first == "" || name < first) {
			first = name
		}
	}
	return first
}
