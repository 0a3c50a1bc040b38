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

	sessionIdle   = 30 * time.Minute // maximum time without a request
	sessionTime   = 8 * time.Hour    // maximum duration
	accountTime   = time.Hour        // maximum duration for an account of an issuer, which may lose its roles during the session
	renewalPeriod = time.Minute      // minimum interval between two cookies of a session
)

// A browserSession is the content of the sealed cookie of a browser. Before the
// operator signs in, it has only the token of forms.
type browserSession struct {
	Form  []byte `json:"form"`            // token of the session's forms
	Ends  int64  `json:"ends"`            // latest end, in seconds since 1970
	Token []byte `json:"token,omitempty"` // SHA-256 of the operator's token
	Name  string `json:"name,omitempty"`  // name that the operator has typed, or that the issuer shows for the account; it proves nothing

	Account *identity.Account `json:"account,omitempty"` // account at the issuer
}

// readSession reads the session of the request. A request without a session starts a new one, whose
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
// the login is no longer valid.
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

// beginSession replaces the browser's session by a new one.
func (v *visit) beginSession(s browserSession, limit time.Duration) {
	v.session = v.newSession(s, limit)
	v.operator = v.operatorOf(v.session)
	v.sendSession()
}

// sendSession sets the cookie of the session, whose idle time begins now.
func (v *visit) sendSession() {
	end := time.Unix(v.session.Ends, 0)
	expires := v.opts.Clock().Add(sessionIdle)
	if expires.After(end) {
		expires = end
	}
	v.setCookie(sessionCookie, v.sealer.seal(sessionCookie, v.session, expires), expires, http.SameSiteStrictMode)
	v.isSessionSent = true
}

// needSession ensures that the browser receives the cookie of the session, because a form contains
// the session's token.
func (v *visit) needSession() {
	if !v.isSessionSent && v.isNewSession() {
		v.sendSession()
	}
}

// isNewSession reports whether the browser has not received the session's cookie yet.
func (v *visit) isNewSession() bool {
	shown := new(browserSession)
	_, isValid := v.sealer.open(sessionCookie, v.cookie(sessionCookie), shown)
	return !isValid || !bytes.Equal(shown.Form, v.session.Form)
}

// formToken returns the token that the session's forms contain.
func (s *browserSession) formToken() string { return base64.RawURLEncoding.EncodeToString(s.Form) }

// hasFormToken reports whether a form contains the token of the session.
func (s *browserSession) hasFormToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.formToken())) == 1
}
