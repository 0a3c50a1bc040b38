package console

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/identity"
)

const (
	sessionCookie = "session"

	sessionIdle   = 30 * time.Minute // maximum time between two requests of a session
	sessionTime   = 8 * time.Hour    // maximum duration
	accountTime   = time.Hour        // maximum duration for an issuer's account, whose roles are read only at sign-in
	renewalPeriod = time.Minute      // minimum interval between two renewals of a session cookie
)

// A browserSession is the content of a browser's encrypted session cookie. Before the operator
// signs in, it contains only the form token.
type browserSession struct {
	Form  []byte `json:"form"`            // token that the session's forms contain
	Ends  int64  `json:"ends"`            // time at which the session ends at the latest, in seconds since 1970
	Token []byte `json:"token,omitempty"` // SHA-256 of the operator's token
	Name  string `json:"name,omitempty"`  // name from the operator or from the issuer; it is not verified

	Account *identity.Account `json:"account,omitempty"` // account at the issuer
}

// readSession reads the session of the request. A request without a session starts a new one. Its
// cookie is set only if a form needs it.
func (v *visit) readSession() {
	s := new(browserSession)
	expires, isValid := v.sealer.open(sessionCookie, v.cookie(sessionCookie), s)
	now := v.opts.Clock()
	if !isValid || now.Unix() >= s.Ends {
		v.session = v.newSession(browserSession{}, sessionTime)
		return
	}
	v.session = s
	if v.operator = v.operatorOf(s); v.operator == nil {
		s.Token, s.Name, s.Account = nil, "", nil
	}
	if sinceLast := sessionIdle - expires.Sub(now); sinceLast >= renewalPeriod && !v.page.isFragment() {
		v.sendSession()
	}
}

// operatorOf returns the operator of a session. It returns nil if no operator has signed in, or if
// the operator's token or account is no longer valid.
func (v *visit) operatorOf(s *browserSession) *identity.Principal {
	switch {
	case len(s.Token) == sha256.Size:
		return v.host.OperatorOf([sha256.Size]byte(s.Token))
	case s.Account != nil && v.opts.SignIn != nil && s.Account.Issuer == v.opts.SignIn.Issuer():
		return s.Account.Principal()
	}
	return nil
}

// newSession returns a session with a new form token, which ends after limit.
func (v *visit) newSession(s browserSession, limit time.Duration) *browserSession {
	s.Form, s.Ends = randomBytes(v.opts.Random, 16), v.opts.Clock().Add(limit).Unix()
	return &s
}

// beginSession replaces the browser's session with a new one.
func (v *visit) beginSession(s browserSession, limit time.Duration) {
	v.session = v.newSession(s, limit)
	v.operator = v.operatorOf(v.session)
	v.sendSession()
}

// sendSession sets the session cookie, and restarts the idle time.
func (v *visit) sendSession() {
	end := time.Unix(v.session.Ends, 0)
	expires := v.opts.Clock().Add(sessionIdle)
	if expires.After(end) {
		expires = end
	}
	v.setCookie(sessionCookie, v.sealer.seal(sessionCookie, v.session, expires), expires, http.SameSiteStrictMode)
	v.isSessionSent = true
}

// needSession ensures that the browser receives the session cookie. Each form needs it, because the
// form contains the session's token.
func (v *visit) needSession() {
	if !v.isSessionSent && v.isNewSession() {
		v.sendSession()
	}
}

// isNewSession reports whether the browser has not yet received the session cookie.
func (v *visit) isNewSession() bool {
	shown := new(browserSession)
	_, isValid := v.sealer.open(sessionCookie, v.cookie(sessionCookie), shown)
	return !isValid || !bytes.Equal(shown.Form, v.session.Form)
}

// formToken returns the token that the session's forms contain.
func (s *browserSession) formToken() string { return base64.RawURLEncoding.EncodeToString(s.Form) }

// hasFormToken reports whether token is the session's form token.
func (s *browserSession) hasFormToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.formToken())) == 1
}
