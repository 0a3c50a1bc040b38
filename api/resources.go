package api

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/api/internal/etag"
	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/watch"
)

// resourceOf returns the resource that the path of a request names. The query must be empty.
func resourceOf(r *http.Request) (domain.Resource, error) {
	if _, err := query.Parse(r); err != nil {
		return domain.Resource{}, err
	}
	found, err := domain.Kept(pathparam.Value(r, "name"))
	if err == nil {
		recordOf(r.Context()).note(slog.String("resource", found.Name()))
	}
	return found, err
}

func (s *Server) getResource(w http.ResponseWriter, r *http.Request) error {
	name, err := resourceOf(r)
	if err != nil {
		return err
	}
	found, err := s.opts.Watches.Document(r.Context(), name)
	if err != nil {
		return asResourceProblem(r.Context(), err)
	}
	setResourceVersion(w, found)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(found.Body) //nolint:gosec,nolintlint // it is JSON, and no browser treats it as HTML; a client that is gone needs no answer
	return nil
}

// setResourceVersion sets the headers ETag and Last-Modified for a document.
func setResourceVersion(w http.ResponseWriter, found *watch.Document) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("ETag", etag.Of(found.Version))
	w.Header().Set("Last-Modified", found.Changed.UTC().Format(http.TimeFormat))
}

func (s *Server) putResource(w http.ResponseWriter, r *http.Request) error {
	name, err := resourceOf(r)
	if err != nil {
		return err
	}
	when, err := resourceCondition(r)
	if err != nil {
		return err
	}
	if err := checkContentType(w, r); err != nil {
		return err
	}
	body, release, err := s.readBody(w, r, watch.MaxDocument)
	defer release()
	if err != nil {
		return err
	}
	if err := checkJSONText(body); err != nil {
		return err
	}
	stored, created, err := s.opts.Watches.PutDocument(r.Context(), name, bytes.TrimSpace(body), when)
	if err != nil {
		return asResourceProblem(r.Context(), err)
	}
	setResourceVersion(w, stored)
	if created {
		w.Header().Set("Location", name.String())
		w.WriteHeader(http.StatusCreated)
		return nil
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) deleteResource(w http.ResponseWriter, r *http.Request) error {
	name, err := resourceOf(r)
	if err != nil {
		return err
	}
	when, err := resourceCondition(r)
	if err != nil {
		return err
	}
	if err := s.opts.Watches.DeleteDocument(r.Context(), name, when); err != nil {
		return asResourceProblem(r.Context(), err)
	}
	return writeNothing(w)
}

// resourceCondition returns the condition under which a request may change a document.
func resourceCondition(r *http.Request) (watch.Condition, error) {
	exists, versions := etag.Match(r)
	c := watch.Condition{Exists: exists, Versions: versions}
	if absent := strings.Join(r.Header.Values("If-None-Match"), ","); absent != "" {
		if absent != "*" {
			return c, domain.Errorf(domain.Invalid, "If-None-Match: want *, got %q", domain.Shorten(absent))
		}
		c.IsAbsent = true
	}
	return c, nil
}

// asResourceProblem returns the problem for an error about a client's document.
func asResourceProblem(ctx context.Context, err error) error {
	if errors.Is(err, watch.ErrChanged) {
		return &problemError{
			problem: preconditionFailed, cause: err,
			detail: "Nothing was changed: the document does not fulfil If-Match or If-None-Match, because it was changed, or is there, or is not. Read it, and repeat the request with its ETag, or without a condition.",
		}
	}
	return asProblem(ctx, err)
}
