package atom

import (
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

// checkToken returns an error unless the request has a valid token with the right Manage. If the token is valid but
// lacks this right, reading a missing entity returns the error for a missing entity.
func (h *Handler) checkToken(r *http.Request, path string) error {
	token := r.Header.Get("Authorization")
	if h.Open || h.TrustTokens && token != "" && !strings.HasPrefix(token, "SharedAccessSignature ") {
		h.reportAuthorized(r)
		return nil
	}
	if token == "" {
		return newStatusError(http.StatusUnauthorized, "MissingToken: the request has no authorization header")
	}
	claim, err := h.Keys.Check(token, h.Clock.Now())
	if err != nil {
		return newStatusError(http.StatusUnauthorized, "%v", err)
	}
	h.reportAuthorized(r)
	if claim.Covers(path, sas.Manage, h.Clock.Now()) {
		return nil
	}
	return h.missingRight(r.Method, path)
}

func (h *Handler) reportAuthorized(r *http.Request) {
	if h.Authorized != nil {
		h.Authorized(r)
	}
}

// missingRight returns the error for a missing right, in the wording of Service Bus.
func (h *Handler) missingRight(method, path string) error {
	if folder, operation := operationOn(method, path); folder != "" {
		return newStatusError(http.StatusUnauthorized, "401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation on endpoint '%s'", operation, path)
	}
	switch method {
	case http.MethodPut:
		return newStatusError(http.StatusUnauthorized, "Authorization failed for specified action: Manage,EntityWrite.")
	case http.MethodDelete:
		return newStatusError(http.StatusUnauthorized, "Authorization failed for specified action: Manage,EntityDelete.")
	}
	if _, err := h.Bus.Entity(path); err != nil && !strings.HasPrefix(path, "$") {
		return notFound(path)
	}
	return newStatusError(http.StatusUnauthorized, "Manage,EntityRead claims required for this operation.")
}

// operationOn returns how Service Bus names an operation on a subscription or rule.
func operationOn(method, path string) (folder, operation string) {
	for _, kind := range []struct{ folder, one, all string }{
		{"/rules", "Rule", "EnumerateRules"},
		{"/subscriptions", "Subscription", "EnumerateSubscriptions"},
	} {
		_, name, found := cutLast(path, kind.folder)
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
	return newStatusError(http.StatusNotFound, "SubCode=40400. the messaging entity '%s' could not be found", path)
}
