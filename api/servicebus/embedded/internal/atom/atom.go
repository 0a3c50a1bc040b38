// Package atom manages the entities of a namespace over HTTP, in the Atom
// documents that the management clients of Service Bus read and write.
//
//	GET    /$namespaceinfo                  the namespace
//	GET    /$Resources/queues, …/topics     all queues or topics, in pages
//	GET    /<entity>                        the entity, with its counts
//	PUT    /<entity>                        create the entity, or update it with If-Match
//	DELETE /<entity>
//
// An entity is a queue, a topic, <topic>/Subscriptions/<name>, or a rule:
// <subscription>/Rules/<name>. All state is in the bus. The response to a failed request has a
// status and an Error document. A failed request has no effect.
package atom

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

// A Handler serves one namespace.
type Handler struct {
	Bus         *bus.Bus
	Keys        sas.Keys
	Clock       bus.Clock
	Open        bool // Open grants all rights without a token
	TrustTokens bool // TrustTokens accepts any token that is not a shared access signature

	// Authorized, if set, is called for each request that has a valid token.
	Authorized func(*http.Request)
}

// A statusError is an error with the HTTP status of the response.
type statusError struct {
	status int
	text   string
}

func (f *statusError) Error() string { return f.text }

func newStatusError(status int, format string, args ...any) error {
	return &statusError{status, fmt.Sprintf(format, args...)}
}

var statuses = []struct {
	err    error
	status int
}{
	{bus.ErrNotFound, http.StatusNotFound},
	{bus.ErrExists, http.StatusConflict},
	{bus.ErrInvalid, http.StatusBadRequest},
	{bus.ErrNotAllowed, http.StatusBadRequest},
	{bus.ErrClosed, http.StatusServiceUnavailable},
	{bus.ErrBusy, http.StatusServiceUnavailable},
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, document, err := h.serveRequest(r)
	if err != nil {
		status = http.StatusInternalServerError
		var f *statusError
		if errors.As(err, &f) {
			status = f.status
		}
		for _, s := range statuses {
			if errors.Is(err, s.err) {
				status = s.status
			}
		}
		document = errorDocument{Code: status, Detail: err.Error()}
	}
	if document == nil {
		w.WriteHeader(status)
		return
	}
	text, err := xml.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text = bytes.ReplaceAll(text, []byte("&#39;"), []byte("'")) // clients search for a plain apostrophe; attributes use double quotes
	w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) //nolint:gosec // escaped by xml.Marshal; the client may be gone
}

func (h *Handler) serveRequest(r *http.Request) (status int, document any, err error) {
	path, page, err := parseTarget(r)
	if err != nil {
		return 0, nil, err
	}
	if err := h.checkToken(r, path); err != nil {
		return 0, nil, err
	}
	host := "https://" + r.Host + "/"
	parent, rule, isRule := cutLast(path, "/rules")
	switch {
	case r.Method == http.MethodGet && strings.EqualFold(path, "$namespaceinfo"):
		return http.StatusOK, h.namespaceInfo(r.Host), nil
	case r.Method == http.MethodGet && strings.EqualFold(path, "$Resources/queues"):
		return http.StatusOK, h.listEntities(host, page, func(e bus.Entity) bool { return e.Kind == bus.Queue }), nil
	case r.Method == http.MethodGet && strings.EqualFold(path, "$Resources/topics"):
		return http.StatusOK, h.listEntities(host, page, func(e bus.Entity) bool { return e.Kind == bus.Topic }), nil
	case strings.HasPrefix(path, "$") || path == "":
		return 0, nil, newStatusError(http.StatusNotFound, "there is nothing at /%s", path)
	case isRule && rule == "" && r.Method == http.MethodGet:
		document, err = h.listRules(host, parent, page)
		return http.StatusOK, document, err
	case isRule:
		return h.serveRule(r, host, parent, rule)
	}
	if topic, name, found := cutLast(path, "/subscriptions"); found && name == "" && r.Method == http.MethodGet {
		if _, err := h.Bus.Entity(topic); err != nil {
			return 0, nil, err
		}
		prefix := strings.ToLower(topic) + "/subscriptions/"
		return http.StatusOK, h.listEntities(host, page, func(e bus.Entity) bool { return strings.HasPrefix(strings.ToLower(e.Path), prefix) }), nil
	}
	return h.serveEntity(r, host, path)
}

// cutLast splits a path at the last occurrence of folder, ignoring case.
func cutLast(path, folder string) (parent, name string, found bool) {
	i := strings.LastIndex(strings.ToLower(path), folder)
	if i < 1 {
		return path, "", false
	}
	rest := path[i+len(folder):]
	if rest != "" && rest[0] != '/' {
		return path, "", false
	}
	return path[:i], strings.TrimPrefix(rest, "/"), true
}

// A pageRange is the requested part of a list.
type pageRange struct{ skip, top int }

// defaultTop is the default length of a list.
const defaultTop = 100

func parseTarget(r *http.Request) (string, pageRange, error) {
	p := pageRange{top: defaultTop}
	query := r.URL.Query()
	for name, to := range map[string]*int{"$skip": &p.skip, "$top": &p.top} {
		text := query.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return "", p, newStatusError(http.StatusBadRequest, "%s=%s: want a number", name, text)
		}
		*to = n
	}
	return strings.Trim(r.URL.Path, "/"), p, nil
}

// itemsOn returns the items of the requested page.
func itemsOn[T any](p pageRange, all []T) []T {
	all = all[min(p.skip, len(all)):]
	return all[:min(p.top, len(all))]
}

// readDescription decodes the description of an entity in the body of a request.
func readDescription(r *http.Request) (*description, error) {
	const largest = 1 << 20
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, largest))
	if err != nil {
		return nil, newStatusError(http.StatusRequestEntityTooLarge, "%v", err)
	}
	var e struct {
		Content struct {
			Description *description `xml:",any"`
		} `xml:"content"`
	}
	if err := xml.Unmarshal(text, &e); err != nil || e.Content.Description == nil {
		return nil, newStatusError(http.StatusBadRequest, "SubCode=40000. the body is not an entry with a description: %v", err)
	}
	return e.Content.Description, nil
}

// awaitResult waits for an operation of the bus and returns its error.
func awaitResult(r *http.Request, operation func(done func(error))) error {
	answer := make(chan error, 1)
	operation(func(err error) { answer <- err })
	select {
	case err := <-answer:
		return err
	case <-r.Context().Done():
		return r.Context().Err()
	}
}
