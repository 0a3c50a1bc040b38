// Package loopback distinguishes this machine from other machines: by the address of a listener, by
// the Host header of a request, and by the host of a URL.
//
// A server on a loopback address has to check the Host header. Otherwise a web page
// whose own name resolves to 127.0.0.1 (DNS rebinding) reaches it with the browser of
// a user of this machine. [CheckHost] makes this check for every server of an embedded engine
// and an emulator; the hub uses [IsHost].
//
//	                 localhost   127.0.0.0/8, ::1   x.localhost   others
//	IsHost           yes         yes                yes           no
//	IsDestination    yes         yes                no            no
//
// Like many development servers, IsHost accepts names below localhost: RFC 6761 reserves these
// names and browsers resolve them to loopback, so no web page of another machine can have such a
// name. IsDestination does not accept them, because a resolver that does not follow the RFC
// queries the network, and a secret could be sent to another machine.
package loopback

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// IsAddr reports whether a listener on addr can be reached only from this machine.
func IsAddr(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// IsHost reports whether a Host header names this machine. The port is optional.
func IsHost(host string) bool {
	name := hostName(host)
	return IsDestination(name) || strings.HasSuffix(name, ".localhost")
}

// IsDestination reports whether a connection to host stays on this machine. The host is a name or an address without a
// port.
func IsDestination(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// CheckHost returns a handler that accepts requests whose Host header names this machine or one of hosts. It rejects
// all other requests with 421 and the text refusal. If other machines can reach addr, CheckHost returns next, because
// the check would not protect it.
func CheckHost(addr net.Addr, next http.Handler, refusal string, hosts ...string) http.Handler {
	if !IsAddr(addr) {
		return next
	}
	accepted := make([]string, len(hosts))
	for i, host := range hosts {
		accepted[i] = hostName(host)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsHost(r.Host) && !slices.Contains(accepted, hostName(r.Host)) {
			http.Error(w, refusal, http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostName returns the host of a Host header in lower case, without port and brackets.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}
