package broker

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

const (
	formType = "application/x-www-form-urlencoded"
	maxForm  = 64 << 10 // bytes
)

// readForm reads the form of a request that creates or changes a party. It accepts the fields
// callbackUrl and type only for a consumer.
func (e *edge) readForm(w http.ResponseWriter, r *http.Request, isConsumer bool) (broker.Draft, error) {
	contentType := r.Header.Get("Content-Type")
	media, params, _ := mime.ParseMediaType(contentType)
	if charset, hasCharset := params["charset"]; media != formType || hasCharset && !strings.EqualFold(charset, "utf-8") {
		return broker.Draft{}, &MediaTypeError{"Content-Type", contentType, formType}
	}
	if err := checkCoding(w, r); err != nil {
		return broker.Draft{}, err
	}
	body, release, err := e.host.ReadBody(w, r, maxForm)
	if err != nil {
		return broker.Draft{}, err
	}
	defer release()
	return parseForm(string(body), isConsumer)
}

// checkCoding returns an error for a compressed body.
func checkCoding(w http.ResponseWriter, r *http.Request) error {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return &MediaTypeError{"Content-Encoding", coding, "the body without a content coding"}
	}
	return nil
}

// parseForm decodes a form. Its error is a [FormError], which does not contain the field's value,
// because the value may be a token.
func parseForm(text string, isConsumer bool) (broker.Draft, error) {
	var d broker.Draft
	values, err := url.ParseQuery(text)
	if err != nil {
		return d, domain.Errorf(domain.Invalid, "The body is not a form: it has a malformed percent-encoding or a semicolon between fields.")
	}
	known := []string{"name", "token"}
	if isConsumer {
		known = []string{"callbackUrl", "name", "token", "type"}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // sorted, so that the same form always results in the same response
	for _, name := range names {
		switch {
		case !slices.Contains(known, name):
			return d, &FormError{domain.Shorten(name), "unknown field; known are " + strings.Join(known, ", ")}
		case len(values[name]) > 1:
			return d, &FormError{name, "it occurs several times"}
		}
	}
	d.Label, d.CallbackURL = values.Get("name"), values.Get("callbackUrl")
	if values.Has("token") {
		token := values.Get("token")
		d.Token = &token
	}
	if isConsumer && d.CallbackURL == "" {
		return d, &FormError{"callbackUrl", "missing; want the URL that the consumer is called at"}
	}
	if kind := values.Get("type"); kind != "" && kind != "push" {
		return d, &FormError{"type", "want push, or no type: each consumer is called, and may fetch messages by peek besides"}
	}
	return d, nil
}
