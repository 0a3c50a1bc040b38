package console

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// cookieName returns the full name of a cookie. With TLS, the name has a prefix because of which
// browsers refuse a cookie that was set without TLS or by another host.
//
// Browsers send the cookies of a host to all its ports. Hubs on different ports of one machine must
// not overwrite each other's cookies, so the name contains the port of the request, unless it is
// the default port.
func (v *visit) cookieName(name string) string {
	name = "messagehub-" + name
	if _, text, err := net.SplitHostPort(v.r.Host); err == nil {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil {
			name += "-" + strconv.FormatUint(port, 10)
		}
	}
	if v.isSecure() {
		return "__Host-" + name
	}
	return name
}

// isSecure reports whether the browser sent the request over HTTPS.
func (v *visit) isSecure() bool { return v.opts.IsSecure || v.r.TLS != nil }

// setCookie sets a cookie that expires at expires; the zero time deletes the cookie.
func (v *visit) setCookie(name, value string, expires time.Time, site http.SameSite) {
	c := &http.Cookie{ //nolint:gosec // Secure is set only with TLS: without TLS, browsers reject a Secure cookie
		Name: v.cookieName(name), Value: value, Path: "/",
		HttpOnly: true, Secure: v.isSecure(), SameSite: site,
		MaxAge: int(expires.Sub(v.opts.Clock()).Seconds()),
	}
	if c.MaxAge <= 0 {
		c.Value, c.MaxAge = "", -1
	}
	http.SetCookie(v.w, c)
}

// cookie returns the value of a cookie, or "" if the request does not have the cookie.
func (v *visit) cookie(name string) string {
	c, err := v.r.Cookie(v.cookieName(name))
	if err != nil {
		return ""
	}
	return c.Value
}
