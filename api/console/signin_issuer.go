package console

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/messagehub/messagehub/api/identity"
)

const (
	callbackPath  = "/sign-in/callback"
	attemptCookie = "attempt"
	attemptTime   = 10 * time.Minute
)

// A pendingAttempt is an attempt to sign in at the issuer, with the path of the page to show
// afterwards.
type pendingAttempt struct {
	identity.Attempt
	Next string `json:"next"`
}

var errNoIssuer = &pageError{http.StatusNotFound, "This hub has no issuer to sign in at", "Sign in with a token of the operators. The settings oidc.issuer and console.client-id add an issuer."}

// startSignIn redirects the browser to the issuer.
func (v *visit) startSignIn() error {
	if v.opts.SignIn == nil {
		return errNoIssuer
	}
	address, attempt, err := v.opts.SignIn.Begin(v.ctx(), v.callbackURL())
	if err != nil {
		return v.showFailedSignIn(err)
	}
	expires := v.opts.Clock().Add(attemptTime)
	// The issuer redirects the browser back from another site. Browsers send no cookies with
	// SameSite=Strict with such a request.
	v.setCookie(attemptCookie, v.sealer.seal(attemptCookie, pendingAttempt{attempt, v.pathAfterSignIn()}, expires), expires, http.SameSiteLaxMode)
	return v.redirect(address)
}

// callbackURL returns the URL to which the issuer redirects the browser.
func (v *visit) callbackURL() string {
	scheme := "http://"
	if v.isSecure() {
		scheme = "https://"
	}
	return scheme + v.r.Host + root + callbackPath
}

// finishSignIn begins a session for the account with which the operator has signed in at the
// issuer.
func (v *visit) finishSignIn() error {
	if v.opts.SignIn == nil {
		return errNoIssuer
	}
	var attempt pendingAttempt
	if _, isValid := v.sealer.open(attemptCookie, v.cookie(attemptCookie), &attempt); !isValid {
		attempt = pendingAttempt{}
	}
	if v.cookie(attemptCookie) != "" {
		v.setCookie(attemptCookie, "", time.Time{}, http.SameSiteLaxMode)
	}
	account, err := v.opts.SignIn.Finish(v.ctx(), v.callbackURL(), attempt.Attempt, v.r.URL.Query())
	if err != nil {
		return v.showFailedSignIn(err)
	}
	if !account.Principal().Has(look) {
		return &pageError{http.StatusForbidden, "Your account may not see this console", "It needs the role operator.read or operator. Ask the administrator of your accounts for it, and sign in again."}
	}
	v.beginSession(browserSession{Name: account.Name, Account: account}, accountTime)
	return v.continueHere(attempt.Next)
}

// showFailedSignIn shows why an account could not sign in.
func (v *visit) showFailedSignIn(err error) error {
	e, ok := errors.AsType[*identity.Error](err)
	if !ok {
		return err // the browser has disconnected
	}
	status := http.StatusUnauthorized
	if e.Kind == identity.Unavailable {
		status = http.StatusServiceUnavailable
	}
	v.noteRefusal(e.Description)
	return v.show(&view{status: status, title: "You are not signed in", body: []g.Node{
		notice(bad, h.P(bdi(e.Description))),
		h.P(h.A(h.Href(link("sign-in")), g.Text("Sign in"))),
	}})
}

// hostOf returns the host of a URL.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
}
