package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
)

// watchesPath is the path of an actor's watches.
const watchesPath = "/v1/_notifications/watch"

// maxWatch is the maximum size of a watch in a request, in bytes.
const maxWatch = 64 << 10

// Default and maximum number of watches in a list.
const (
	defaultWatches = 25
	maxWatches     = 100
	maxWatchOffset = 1_000_000
)

// requireWatches refuses requests if the hub has no store for watches.
func (s *Server) requireWatches(next http.Handler) http.Handler {
	return s.handle(func(w http.ResponseWriter, r *http.Request) error {
		if s.opts.Watches == nil {
			return &problemError{problem: notProvisioned}
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// A watchDocument is the JSON of a watch for its owner. Its members are those of the specification.
type watchDocument struct {
	Resource  string `json:"resource"`
	Callback  string `json:"callback"`
	Created   int64  `json:"created"` // POSIX seconds
	Triggered int64  `json:"count_triggered"`
	Delivered int64  `json:"count_delivered"`
	Errored   int64  `json:"count_errored"`
}

func documentOfWatch(w *watch.Watch) watchDocument {
	return watchDocument{w.Resource, w.CallbackURL, w.Created.Unix(), w.Triggered, w.Delivered, w.Errored}
}

// A listedWatch is the JSON of a watch in a list, with its path.
type listedWatch struct {
	ID string `json:"id"`
	watchDocument
}

// readWatch reads the watch from the body of a request.
func readWatch(w http.ResponseWriter, r *http.Request) (watch.Draft, error) {
	var d watch.Draft
	parameters := r.URL.Query()
	r = r.Clone(r.Context())
	r.URL.RawQuery = "" // the caller has already read the query
	text, err := readObject(w, r, maxWatch)
	if err != nil {
		return d, err
	}
	d.MayBeAbsent = parameters.Get("absent") == "allow"
	into := map[string]*string{"resource": &d.Resource, "callback": &d.CallbackURL}
	seen := make(map[string]bool)
	var faults []bodyFault
	for m, err := range eventjson.Members(text) {
		if err != nil {
			return d, refuse(notJSON, "Nothing was stored: the body must be one JSON object. %v.", err)
		}
		name := string(m.Name)
		at := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(domain.Shorten(name))
		switch {
		case seen[name]:
			faults = append(faults, bodyFault{Pointer: at, Detail: "it occurs twice"})
		case isReadOnlyOfWatch(name):
			faults = append(faults, bodyFault{Pointer: at, Detail: "the hub sets it; leave it out"})
		case into[name] == nil:
			faults = append(faults, bodyFault{Pointer: at, Detail: "unknown field; known are callback, resource"})
		case m.Value[0] != '"' || json.Unmarshal(m.Value, into[name]) != nil:
			faults = append(faults, bodyFault{Pointer: at, Detail: "want a string, got " + eventjson.TypeOf(m.Value)})
		}
		seen[name] = true
	}
	for _, name := range []string{"callback", "resource"} {
		if !seen[name] {
			faults = append(faults, bodyFault{Pointer: "/" + name, Detail: "missing"})
		}
	}
	if len(faults) > 0 {
		return d, badSubscription(faults)
	}
	return d, nil
}

func isReadOnlyOfWatch(name string) bool {
	switch name {
	case "created", "count_triggered", "count_delivered", "count_errored":
		return true
	}
	return false
}

func (s *Server) createWatch(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, "absent")
	if err != nil {
		return err
	}
	if absent := values.Get("absent"); absent != "" && absent != "allow" {
		return domain.Errorf(domain.Invalid, "absent: want allow, or leave it out, got %q", domain.Shorten(absent))
	}
	draft, err := readWatch(w, r)
	if err != nil {
		return err
	}
	p := principalOf(r.Context())
	if p != nil {
		draft.IsOperator = p.Has(identity.RoleOperatorRead)
	} else if token := bearerOf(r); token != "" { // a request without a token does not count as a failed login
		if draft.IsOperator, err = s.isOperator(w, r, token); err != nil {
			return err
		}
		if !draft.IsOperator {
			return missingOperator(w)
		}
	}
	if err := s.checkWatched(r.Context(), draft.Resource); err != nil {
		return asWatchProblem(r.Context(), err)
	}
	id, err := s.opts.Watches.Create(r.Context(), actorOf(r.Context()), draft)
	if errors.Is(err, watch.ErrOperatorsOnly) && p != nil {
		return missingRole(w, []identity.Role{identity.RoleOperatorRead})
	}
	if errors.Is(err, watch.ErrOperatorsOnly) {
		return missingOperator(w)
	}
	if err != nil {
		return asWatchProblem(r.Context(), err)
	}
	recordOf(r.Context()).note(slog.String("watch", id.String()))
	w.Header().Set("Location", watchesPath+"/"+id.String())
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

func (s *Server) putWatch(w http.ResponseWriter, r *http.Request) error {
	id, err := watchID(r)
	if err != nil {
		return err
	}
	draft, err := readWatch(w, r)
	if err != nil {
		return err
	}
	if err := s.opts.Watches.Replace(r.Context(), actorOf(r.Context()), id, draft); err != nil {
		return asWatchProblem(r.Context(), err)
	}
	return writeNothing(w)
}

func (s *Server) deleteWatch(w http.ResponseWriter, r *http.Request) error {
	id, err := watchID(r)
	if err != nil {
		return err
	}
	if err := s.opts.Watches.Delete(r.Context(), actorOf(r.Context()), id); err != nil {
		return asWatchProblem(r.Context(), err)
	}
	return writeNothing(w)
}

func (s *Server) getWatch(w http.ResponseWriter, r *http.Request) error {
	id, err := watchID(r)
	if err != nil {
		return err
	}
	found, err := s.opts.Watches.Get(r.Context(), actorOf(r.Context()), id)
	if err != nil {
		return asWatchProblem(r.Context(), err)
	}
	writeJSON(w, http.StatusOK, documentOfWatch(found))
	return nil
}

// watchAttempts responds with the last calls of a watch, the newest first.
func (s *Server) watchAttempts(w http.ResponseWriter, r *http.Request) error {
	id, err := watchID(r)
	if err != nil {
		return err
	}
	found, err := s.opts.Watches.Attempts(r.Context(), actorOf(r.Context()), id)
	if err != nil {
		return asWatchProblem(r.Context(), err)
	}
	document := struct {
		Next     *time.Time        `json:"next_attempt,omitempty"`
		Attempts []attemptDocument `json:"attempts"`
	}{Attempts: make([]attemptDocument, 0, len(found.Last))}
	if !found.Next.IsZero() {
		next := found.Next.UTC()
		document.Next = &next
	}
	for _, a := range slices.Backward(found.Last) {
		document.Attempts = append(document.Attempts, documentOfAttempt(&a))
	}
	writeJSON(w, http.StatusOK, document)
	return nil
}

func (s *Server) listWatches(w http.ResponseWriter, r *http.Request) error {
	values, err := query.Parse(r, "offset", "count")
	if err != nil {
		return err
	}
	offset, err := numberOf(values.Get("offset"), "offset", 0, 0, maxWatchOffset)
	if err != nil {
		return err
	}
	count, err := numberOf(values.Get("count"), "count", defaultWatches, 1, maxWatches)
	if err != nil {
		return err
	}
	found, err := s.visibleWatches(r.Context(), offset, count)
	if err != nil {
		return asWatchProblem(r.Context(), err)
	}
	items := make([]listedWatch, len(found))
	for i := range found {
		items[i] = listedWatch{found[i].ID.String(), documentOfWatch(found[i])}
	}
	writeJSON(w, http.StatusOK, struct {
		Offset int           `json:"offset"`
		Count  int           `json:"count"`
		Items  []listedWatch `json:"items"`
	}{offset, len(items), items})
	return nil
}

// numberOf parses text, the value of the query parameter called name, as a number from least to
// limit. It returns byDefault if text is "".
func numberOf(text, name string, byDefault, least, limit int) (int, error) {
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > limit {
		return 0, domain.Errorf(domain.Invalid, "%s: want a whole number of %d to %d, got %q", name, least, limit, domain.Shorten(text))
	}
	return n, nil
}

// watchID returns the watch id in the path of a request. The query must be empty. A malformed id is
// reported as an unknown watch.
func watchID(r *http.Request) (domain.WatchID, error) {
	if _, err := query.Parse(r); err != nil {
		return domain.WatchID{}, err
	}
	id, err := domain.ParseWatchID(pathparam.Value(r, "watchId"))
	if err != nil {
		return id, noSuchWatch(err)
	}
	recordOf(r.Context()).note(slog.String("watch", id.String()))
	return id, nil
}

func noSuchWatch(err error) error {
	return &problemError{problem: notFound, cause: err, detail: "This actor has no such watch."}
}

// writeNothing responds with 204.
func writeNothing(w http.ResponseWriter) error {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// asWatchProblem returns the problem for an error whose text may start with a JSON pointer.
func asWatchProblem(ctx context.Context, err error) error {
	p := asProblem(ctx, err)
	if pointer, detail, ok := strings.Cut(p.detail, ": "); ok && p.problem == invalid && strings.HasPrefix(pointer, "/") {
		return badSubscription([]bodyFault{{Pointer: pointer, Detail: detail}})
	}
	return p
}
