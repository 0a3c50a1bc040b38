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

	sessionIdle   = 30 * time.Minute // without a request
	sessionTime   = 8 * time.Hour    // in all
	accountTime   = time.Hour        // in all, of an account of an issuer, which may lose its roles meanwhile
	renewalPeriod = time.Minute      // between two cookies of a session
)

// A browserSession is the content of the sealed cookie of a browser. Before a visitor signs in,
// it has only the token of forms.
type browserSession struct {
	Form  []byte `json:"form"`            // token of its forms
	Ends  int64  `json:"ends"`            // at the latest, in seconds since 1970
	Token []byte `json:"token,omitempty"` // SHA-256 of the token that was shown
	Name  string `json:"name,omitempty"`  // that its owner has typed, or that the issuer says people know; it proves nothing

	Account *identity.Account `json:"account,omitempty"` // of the issuer
}

// readSession finds the session of the request. A request without one has a new one, of which the browser
// learns when a form needs it.
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

// operatorOf returns the operator of a session, nil if that has none or its login no longer counts.
func (v *visit) operatorOf(s *browserSession) *identity.Principal {
	switch {
	case len(s.Token) == sha256.Size:
		return v.host.OperatorOf([sha256.Size]byte(s.Token))
	case s.Account != nil && v.opts.SignIn != nil && s.Account.Issuer == v.opts.SignIn.Issuer():
		return s.Account.Principal()
	}
	return nil
}

// newSession returns a session with a token of forms of its own, which ends after a time.
func (v *visit) newSession(s browserSession, limit time.Duration) *browserSession {
	s.Form, s.Ends = randomBytes(v.opts.Random, 16), v.opts.Clock().Add(limit).Unix()
	return &s
}

// beginSession replaces the session of the browser.
func (v *visit) beginSession(s browserSession, limit time.Duration) {
	v.session = v.newSession(s, limit)
	v.operator = v.operatorOf(v.session)
	v.sendSession()
}

// sendSession sets the cookie of the session, which counts from now on.
func (v *visit) sendSession() {
	end := time.Unix(v.session.Ends, 0)
	expires := v.opts.Clock().Add(sessionIdle)
	if expires.After(end) {
		expires = end
	}
	v.setCookie(sessionCookie, v.sealer.seal(sessionCookie, v.session, expires), expires, http.SameSiteStrictMode)
	v.isSessionSent = true
}

// needSession makes sure that the browser has the session whose token a form carries.
func (v *visit) needSession() {
	if !v.isSessionSent && v.isNewSession() {
		v.sendSession()
	}
}

// isNewSession reports whether the browser does not have the session.
func (v *visit) isNewSession() bool {
	shown := new(browserSession)
	_, isValid := v.sealer.open(sessionCookie, v.cookie(sessionCookie), shown)
	return !isValid || !bytes.Equal(shown.Form, v.session.Form)
}

// formToken returns the token that forms of the session carry.
func (s *browserSession) formToken() string { return base64.RawURLEncoding.EncodeToString(s.Form) }

// hasFormToken reports whether a form is one of the session.
func (s *browserSession) hasFormToken(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.formToken())) == 1
}
