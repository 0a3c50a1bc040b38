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

	isSessionSent bool // whether the response sets the session cookie

	operator *identity.Principal // nil if no operator has signed in
	form     url.Values          // fields of a submitted form
	kept     url.Values          // stored text of a form whose session had ended; nil if none exists
}

func (v *visit) ctx() context.Context { return v.r.Context() }

// isPost reports whether the request submits a form.
func (v *visit) isPost() bool { return v.r.Method == http.MethodPost }

// mayOrder reports whether the operator has the right to give orders.
func (v *visit) mayOrder() bool { return v.operator != nil && v.operator.Has(order) }

// path returns the path parameter called name, such as actor.
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

// value returns a field of the submitted form, or of the stored form. If there is no such form, it
// returns a value from the query, with which a link can fill in a form.
func (v *visit) value(name string) string {
	switch {
	case v.form != nil:
		return v.form.Get(name)
	case v.kept != nil:
		return v.kept.Get(name)
	}
	return v.r.URL.Query().Get(name)
}

// link returns the path of a page. Its parts are escaped and joined by slashes.
func link(parts ...string) string {
	path := root
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// withQuery adds a query to path. pairs are names and values alternately; empty values are omitted.
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
