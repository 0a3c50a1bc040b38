package console

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/identity"
)

const (
	sessionCookie = "session"

	sessionIdle   = 30 * time.Minute // without a request
	sessionTime   = 8 * time.Hour    // in all
	renewalPeriod = time.Minute      // between two cookies of a session
)

// A session is what a sealed cookie says about a browser. Without a login, it is that of a visitor who
// has not signed in, and has only the token of forms.
type session struct {
	Form  []byte `json:"form"`            // token of its forms
	Began int64  `json:"began"`           // seconds since 1970
	Token []byte `json:"token,omitempty"` // SHA-256 of the token that was shown
	Name  string `json:"name,omitempty"`  // that its owner has typed; it proves nothing
}

// readSession returns the session of the request. A request without one gets a new one.
func (v *visit) readSession() {
	s := new(session)
	expires, isValid := v.sealer.open(sessionCookie, v.cookie(sessionCookie), s)
	now := v.opts.Clock()
	if !isValid || now.Sub(time.Unix(s.Began, 0)) >= sessionTime {
		v.beginSession(session{})
		return
	}
	v.session = s
	if v.operator = v.operatorOf(s); v.operator == nil {
		s.Token, s.Name = nil, ""
	}
	if sinceLast := sessionIdle - expires.Sub(now); sinceLast >= renewalPeriod && !v.page.isFragment() {
		v.sendSession()
	}
}

// operatorOf returns the operator of a session, nil if that has none or its login no longer counts.
func (v *visit) operatorOf(s *session) *identity.Principal {
	if sum := s.Token; len(sum) == 32 {
		return v.host.OperatorOf([32]byte(sum))
	}
	return nil
}

// beginSession replaces the session of the browser, with another token of forms.
func (v *visit) beginSession(s session) {
	s.Form, s.Began = randomBytes(v.opts.Random, 16), v.opts.Clock().Unix()
	v.session, v.operator = &s, v.operatorOf(&s)
	v.sendSession()
}

// sendSession sets the cookie of the session, which counts from now on.
func (v *visit) sendSession() {
	end := time.Unix(v.session.Began, 0).Add(sessionTime)
	expires := v.opts.Clock().Add(sessionIdle)
	if expires.After(end) {
		expires = end
	}
	v.setCookie(sessionCookie, v.sealer.seal(sessionCookie, v.session, expires), expires, http.SameSiteStrictMode)
}

// formToken returns the token that forms of the session carry.
func (s *session) formToken() string { return base64.RawURLEncoding.EncodeToString(s.Form) }

// hasFormToken reports whether a form is one of the session.
func (s *session) hasFormToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.formToken())) == 1
}
