package api

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain/ledger"
)

// maxObjectPatch is the maximum size of a patch in bytes.
const maxObjectPatch = 64 << 10

// jsonPatchType is the media type of RFC 6902.
const jsonPatchType = "application/json-patch+json"

// patchObject changes the attributes or the ingest id of one row.
func (s *Server) patchObject(w http.ResponseWriter, r *http.Request) error {
	if _, err := query.Parse(r); err != nil {
		return err
	}
	id, err := objectID(r)
	if err != nil {
		return err
	}
	text, err := readObjectPatch(w, r)
	if err != nil {
		return err
	}
	patch, err := ledger.ParsePatch(text)
	if err != nil {
		return asPatchProblem(r.Context(), err)
	}
	row, err := s.opts.Objects.Amend(r.Context(), id, patch)
	if err != nil {
		return asPatchProblem(r.Context(), err)
	}
	writeJSON(w, http.StatusOK, documentOfObject(&row))
	return nil
}

// startPatch starts a job that patches all rows that match the query.
func (s *Server) startPatch(w http.ResponseWriter, r *http.Request) error {
	values, _, err := listValues(r)
	if err != nil {
		return err
	}
	text, err := readObjectPatch(w, r)
	if err != nil {
		return err
	}
	job, err := s.opts.Objects.StartPatch(r.Context(), values, text)
	if err != nil {
		return asPatchProblem(r.Context(), err)
	}
	return s.answerStarted(w, r, patchesPath, &job)
}

// readObjectPatch returns the text of a patch.
func readObjectPatch(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != jsonPatchType {
		if err := checkContentType(w, r); err != nil {
			w.Header().Set("Accept-Patch", jsonPatchType+", application/json")
			return nil, err
		}
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxObjectPatch))
	if err != nil {
		return nil, unreadableBody(err, maxObjectPatch)
	}
	return text, nil
}

// asPatchProblem returns the problem for an error whose text may start with a JSON pointer.
func asPatchProblem(ctx context.Context, err error) error {
	p := asProblem(ctx, err)
	if p.problem != invalid {
		return p
	}
	if pointer, detail, ok := strings.Cut(p.detail, ": "); ok && strings.HasPrefix(pointer, "/") {
		p.detail, p.faults = "Nothing was changed, because of what errors names.", []bodyFault{{Pointer: pointer, Detail: detail}}
	} else {
		p.detail = fmt.Sprintf("Nothing was changed: %s.", p.detail)
	}
	return p
}
