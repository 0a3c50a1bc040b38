package console

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

const (
	passwordField = "token"
	maxName       = 80 // maximum number of characters of an operator's name
)

// showSignIn shows the form with which an operator signs in.
func (v *visit) showSignIn() error {
	if v.operator != nil {
		return v.redirect(v.pathAfterSignIn())
	}
	return v.showSignInForm(http.StatusOK, nil)
}

// showSignInForm shows the sign-in form, with the faults of its fields.
func (v *visit) showSignInForm(status int, faults map[string]string) error {
	return v.show(&view{
		status: status, title: "Sign in",
		body: []g.Node{
			v.faults(faults),
			g.Iff(v.opts.SignIn != nil, func() g.Node {
				return g.Group{
					h.P(h.A(h.Class("button"), h.Href(withQuery(link("sign-in", "start"), "next", v.pathAfterSignIn())), g.Text("Sign in at "+hostOf(v.opts.SignIn.Issuer())))),
					h.H2(g.Text("With a token of the hub")),
				}
			}),
			v.formTo(link("sign-in"),
				h.Input(h.Type("hidden"), h.Name("next"), h.Value(v.pathAfterSignIn())),
				field{name: "name", label: "Your name", hint: "It is stored in the records of your orders.", value: v.value("name"), fault: faults["name"], autocomplete: "username", limit: maxName}.render(),
				field{name: passwordField, label: "Token of the operators", hint: "The hub's setting admin.token or one of admin.tokens. Without these, the file admin.token in its data folder has it.", fault: faults[passwordField], autocomplete: "current-password", kind: "password"}.render(),
				button("Sign in"),
			),
		},
	})
}

// signIn begins the session of an operator who has entered a token.
func (v *visit) signIn() error {
	name, token := strings.TrimSpace(v.value("name")), strings.TrimSpace(v.value(passwordField))
	faults := make(map[string]string)
	if fault := faultOfName(name); fault != "" {
		faults["name"] = fault
	}
	if token == "" {
		faults[passwordField] = "Type the token."
	}
	if len(faults) > 0 {
		return v.showSignInForm(http.StatusUnprocessableEntity, faults)
	}
	if _, err := v.host.SignIn(v.w, v.r, token); err != nil {
		p := v.host.Problem(v.w, v.r, err)
		faults[passwordField] = p.Detail
		return v.showSignInForm(p.Status, faults)
	}
	sum := sha256.Sum256([]byte(token))
	v.beginSession(browserSession{Token: sum[:], Name: name}, sessionTime)
	return v.redirect(v.pathAfterSignIn())
}

// faultOfName returns what is wrong with an operator's name, or "" if the name is valid.
func faultOfName(name string) string {
	switch {
	case name == "":
		return "Type a name by which others know you."
	case utf8.RuneCountInString(name) > maxName:
		return "Type up to 80 characters."
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) }):
		return "Type only letters, digits and blanks."
	}
	return ""
}

// pathAfterSignIn returns the path of the page that is shown after signing in.
func (v *visit) pathAfterSignIn() string {
	next := v.value("next")
	if below, ok := strings.CutPrefix(next, root+"/"); ok && !strings.HasPrefix(below, "/") && !strings.HasPrefix(below, "sign-") && !strings.ContainsAny(next, "\\\r\n") {
		return next
	}
	return root + "/"
}

// operatorName returns the name of the operator for records and logs: the account, with the typed
// name in parentheses.
func (v *visit) operatorName() string { return v.operator.RecordName(v.session.Name) }

// showSignOut asks whether to sign out, if the sign-out form came from another session.
func (v *visit) showSignOut() error {
	return v.show(&view{title: "Sign out", body: []g.Node{v.formTo(link("sign-out"), button("Sign out"))}})
}

// signOut ends the session of this browser.
func (v *visit) signOut() error {
	v.beginSession(browserSession{}, sessionTime)
	return v.redirect(link("sign-in"))
}
