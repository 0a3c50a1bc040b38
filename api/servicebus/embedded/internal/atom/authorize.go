package atom

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

// authorize wants a good token, with the right to manage. What does not exist
// is told to everybody who has a good token.
func (h *Handler) authorize(r *http.Request, path string) error {
	token := r.Header.Get("Authorization")
	if h.Open || h.TrustTokens && token != "" && !strings.HasPrefix(token, "SharedAccessSignature ") {
		h.authorized(r)
		return nil
	}
	if token == "" {
		return fail(http.StatusUnauthorized, "MissingToken: the request has no authorization header")
	}
	claim, err := h.Keys.Check(token, h.Clock.Now())
	if err != nil {
		return fail(http.StatusUnauthorized, "%v", err)
	}
	h.authorized(r)
	if claim.Covers(path, sas.Manage, h.Clock.Now()) {
		return nil
	}
	return h.refusal(r.Method, path)
}

func (h *Handler) authorized(r *http.Request) {
	if h.Authorized != nil {
		h.Authorized(r)
	}
}

// refusal says which right is missing, in the words of the service.
func (h *Handler) refusal(method, path string) error {
	if folder, operation := operationOn(method, path); folder != "" {
		return fail(http.StatusUnauthorized, "401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation on endpoint '%s'", operation, path)
	}
	switch method {
	case http.MethodPut:
		return fail(http.StatusUnauthorized, "Authorization failed for specified action: Manage,EntityWrite.")
	case http.MethodDelete:
		return fail(http.StatusUnauthorized, "Authorization failed for specified action: Manage,EntityDelete.")
	}
	if _, err := h.Bus.Entity(path); err != nil && !strings.HasPrefix(path, "$") {
		return notFound(path)
	}
	return fail(http.StatusUnauthorized, "Manage,EntityRead claims required for this operation.")
}

// operationOn names what is done to a subscription or a rule.
func operationOn(method, path string) (folder, operation string) {
	for _, kind := range []struct{ folder, one, all string }{
		{"/rules", "Rule", "EnumerateRules"},
		{"/subscriptions", "Subscription", "EnumerateSubscriptions"},
	} {
		_, name, found := cut(path, kind.folder)
		switch {
		case !found:
			continue
		case method == http.MethodPut:
			return kind.folder, "CreateOrUpdate" + kind.one
		case method == http.MethodDelete:
			return kind.folder, "Delete" + kind.one
		case name == "":
			return kind.folder, kind.all
		}
		return kind.folder, "Get" + kind.one
	}
	return "", ""
}

func notFound(path string) error {
	return fail(http.StatusNotFound, "SubCode=40400. the messaging entity '%s' could not be found", path)
}
