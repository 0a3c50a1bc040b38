package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/domain"
)

// A visit is one request for a page.
type visit struct {
	*edge
	page    *pageRoute
	w       http.ResponseWriter
	r       *http.Request
	session *browserSession

	isSessionSent bool // the response sets the session's cookie

	operator *identity.Principal // nil if no operator has signed in
	form     url.Values          // fields of a POST
	kept     url.Values          // text of a form whose session had ended; nil without such a form
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// isPost reports whether the request submits a form.
func (v *visit) isPost() bool { return v.r.Method == http.MethodPost }

// mayOrder reports whether the operator may give orders.
func (v *visit) mayOrder() bool { return v.operator != nil && v.operator.Has(order) }

// path returns a parameter of the path by its name in the pattern, such as
// actor.
func (v *visit) path(name string) string {
	return pathparam.Value(v.r, name)
}

// actor returns the id of the actor in the path.
func (v *visit) actor() (domain.ActorID, error) {
	actor, err := domain.ParseActorID(v.path("actor"))
	if err != nil {
		return actor, &pageError{http.StatusBadRequest, "The actor id is not valid", toSentence(err)}
	}
	return actor, nil
}

// bundleID returns the id of the bundle in the path.
func (v *visit) bundleID() (domain.BundleID, error) {
	id, err := domain.ParseBundleID(v.path("bundle"))
	if err != nil {
		return id, &pageError{http.StatusBadRequest, "The bundle id is not valid", toSentence(err)}
	}
	return id, nil
}

// value returns the text of a field of the submitted form or of the kept form. Without such a form, it
// returns the value in the query, because a link can fill in a form.
func (v *visit) value(name string) string {
	switch {
	case v.form != nil:
		return v.form.Get(name)
	case v.kept != nil:
		return v.kept.Get(name)
	}
	return v.r.URL.Query().Get(name)
}

// link returns the path of a page from its parts, which are escaped and joined
// by slashes.
func link(parts ...string) string {
	path := root
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// withQuery returns a path with pairs of names and values in its query. Empty values are left out.
func withQuery(path string, pairs ...string) string {
	query := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// redirect redirects to the path of a page.
func (v *visit) redirect(path string) error {
	v.w.Header().Set("Location", path)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}
