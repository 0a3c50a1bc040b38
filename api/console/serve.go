package console

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// policy permits only scripts, styles, requests and forms of the console.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// formBytes is the maximum size of a form's body.
const formBytes = 64 << 10

var crossOrigin = http.NewCrossOriginProtection()

func redirectToConsole(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", root+"/")
	w.WriteHeader(http.StatusSeeOther)
}

// serve returns the HTTP handler of a page. It identifies the operator, and calls the page only if
// the operator may see it.
func (e *edge) serve(p *pageRoute) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{edge: e, page: p, w: w, r: r}
		v.setHeaders()
		v.readSession()
		err := v.authorize() //nolint:contextcheck // the visit uses the context of the request
		if err == nil {
			err = p.serve(v)
		}
		if err != nil && !errors.Is(err, errAnswered) {
			v.showError(err) //nolint:contextcheck // the visit uses the context of the request
		}
	}
}

// errAnswered means that the response has already been sent.
var errAnswered = errors.New("the request is answered")

// setHeaders sets the headers of each response. Pages are not compressed, because a page contains
// the session's form token and text that an attacker can choose. The size of a compressed page
// would reveal whether parts of the text and the token are equal.
func (v *visit) setHeaders() {
	header := v.w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
}

// authorize reads the form, and returns an error if the operator or browser may not make the
// request.
func (v *visit) authorize() error {
	if v.isFromOtherSite() {
		return v.continueHere(v.r.URL.RequestURI())
	}
	if v.isPost() {
		if err := crossOrigin.Check(v.r); err != nil {
			return errOtherSite
		}
		if err := v.readForm(); err != nil {
			return err
		}
	}
	if v.operator != nil {
		v.host.SetPrincipal(v.ctx(), v.operator)
		v.host.Note(v.ctx(), slog.String("who", v.operatorName()))
	}
	switch {
	case v.operator == nil && v.page.role != "":
		return v.askToSignIn()
	case v.isPost() && !v.session.hasFormToken(v.form.Get(tokenField)):
		v.keepForm()
		return errOldForm
	case v.page.role != "" && !v.operator.Has(v.page.role):
		return errLook
	}
	if !v.isPost() {
		v.readKept()
	}
	return nil
}

// isFromOtherSite reports whether the request came from a link on another site. Browsers send such
// a request without the session cookie.
func (v *visit) isFromOtherSite() bool {
	site := v.r.Header.Get("Sec-Fetch-Site")
	return !v.isPost() && v.cookie(sessionCookie) == "" && v.page.path != callbackPath &&
		(site == "cross-site" || site == "same-site") && v.r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// continueHere responds with a page that redirects to a path of the console. The browser sends the
// session cookie with the redirected request, which comes from the console.
func (v *visit) continueHere(path string) error {
	if err := v.show(&view{title: "One moment", refresh: path, body: []g.Node{h.P(h.A(h.Href(path), g.Text("Continue")))}}); err != nil {
		return err
	}
	return errAnswered
}

// askToSignIn redirects the browser to the sign-in page. It first stores the text of a submitted
// form in cookies, so that the form can be shown again after signing in.
func (v *visit) askToSignIn() error {
	next := v.r.URL.RequestURI()
	if v.isPost() {
		v.keepForm()
		next = v.r.URL.EscapedPath()
	}
	if v.page.isFragment() {
		v.w.Header().Set("HX-Refresh", "true") // with this header, htmx reloads the page, which redirects to the sign-in page
		v.w.WriteHeader(http.StatusNoContent)
		return errAnswered
	}
	if err := v.redirect(withQuery(link("sign-in"), "next", next)); err != nil {
		return err
	}
	return errAnswered
}

// readForm reads the fields of a form.
func (v *visit) readForm() error {
	body, release, err := v.host.ReadBody(v.w, v.r, formBytes)
	if err != nil {
		return err
	}
	defer release()
	if v.form, err = url.ParseQuery(string(body)); err != nil {
		return &pageError{http.StatusBadRequest, "The form cannot be read", "Nothing was done. Open the page again, and send the form from there."}
	}
	return nil
}

// noteRefusal adds the reason for refusing a request to the request's log line.
func (v *visit) noteRefusal(why string) { v.host.Note(v.ctx(), slog.String("refused", why)) }

// showError responds with a page about an error.
func (v *visit) showError(err error) {
	var p Problem
	if refused, ok := errors.AsType[*pageError](err); ok {
		v.noteRefusal(refused.title)
		p = Problem{Status: refused.status, Title: refused.title, Detail: refused.detail}
	} else {
		p = v.host.Problem(v.w, v.r, err)
	}
	back := link("") // path of the overview page
	if v.isPost() {
		back = v.r.URL.EscapedPath()
	}
	_ = v.show(&view{
		status: p.Status, title: p.Title,
		body: []g.Node{
			h.P(bdi(cmp.Or(p.Detail, "The log of the hub has the details."))),
			g.If(p.RequestID != "", h.P(g.Text("Request id: "), code(p.RequestID))),
			h.P(h.A(h.Href(back), g.Text("Open the page again"))),
		},
	})
}
