package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// localOnly refuses requests that name another host than this machine. A hub on
// a loopback address trusts whoever reaches it; a web page that has its own name
// resolve to that address must not.
func (s *Server) localOnly(next http.Handler) http.Handler {
	if !s.opts.LocalOnly {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			s.fail(w, r, refuse(invalid, "This hub serves this machine only, by the names localhost and 127.0.0.1, not by %q.", clip(r.Host)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
