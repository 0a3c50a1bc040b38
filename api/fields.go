package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/messagehub/messagehub/api/internal/eventjson"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
)

// jsonFields are the members that the body of an operator's request may contain. Each is mapped to
// a pointer to a variable for its value: a *string, a *bool, or a *json.RawMessage for an object.
type jsonFields map[string]any

// readFields reads the fields from a small JSON object. The required fields must be present; an
// unknown or duplicate field is an error.
func (f jsonFields) readFields(w http.ResponseWriter, r *http.Request, limit int64, required ...string) error {
	text, err := readObject(w, r, limit)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	var wrong []bodyFault
	for m, err := range eventjson.Members(text) {
		if err != nil {
			return refuse(notJSON, "Nothing was done: the body must be one JSON object. %v.", err)
		}
		name := string(m.Name)
		if what := f.setField(name, m.Value, seen[name]); what != "" {
			wrong = append(wrong, bodyFault{Pointer: "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(domain.Shorten(name)), Detail: what})
		}
		seen[name] = true
	}
	for _, name := range required {
		if !seen[name] {
			wrong = append(wrong, bodyFault{Pointer: "/" + name, Detail: "missing"})
		}
	}
	if len(wrong) > 0 {
		return &problemError{problem: invalid, detail: "Nothing was done, because of what errors names. Correct it and send the request again.", faults: wrong[:min(len(wrong), maxFaults)]}
	}
	return nil
}

// readObject returns the body of a request, which must be a JSON object of up to limit bytes. The
// request must not have a query.
func readObject(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if _, err := query.Parse(r); err != nil {
		return nil, err
	}
	if err := checkContentType(w, r); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, unreadableBody(err, limit)
	}
	text = bytes.TrimSpace(text)
	if !utf8.Valid(text) || len(text) == 0 || text[0] != '{' {
		return nil, refuse(notJSON, "Nothing was done: the body must be one JSON object in UTF-8.")
	}
	return text, nil
}

// setField sets the variable of a member to value. It returns why the member is invalid, or "" if
// it is valid.
func (f jsonFields) setField(name string, value []byte, again bool) string {
	var err error
	want := ""
	switch at := f[name].(type) {
	case nil:
		known := make([]string, 0, len(f))
		for k := range f {
			known = append(known, k)
		}
		slices.Sort(known)
		return "unknown field; known are " + joinWords(known)
	case *string:
		err, want = unmarshalAs(value, '"', at), "a string"
	case *bool:
		err, want = unmarshalAs(value, value[0], at), "true or false"
	case *json.RawMessage:
		err, want = unmarshalAs(value, '{', at), "an object"
	}
	switch {
	case again:
		return "it occurs twice"
	case err != nil:
		return fmt.Sprintf("want %s, got %s", want, eventjson.TypeOf(value))
	}
	return ""
}

// unmarshalAs unmarshals a value that must start with the character begin. It refuses null, which
// would leave the variable unchanged.
func unmarshalAs(value []byte, begin byte, at any) error {
	if value[0] != begin || value[0] == 'n' {
		return errors.New("another type")
	}
	return json.Unmarshal(value, at)
}

func unreadableBody(err error, limit int64) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &problemError{problem: bodyTooLarge, close: true, detail: fmt.Sprintf("Nothing was done: the body is larger than %d bytes.", limit)}
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &problemError{problem: bodySlow, close: true, detail: "Nothing was done: the body was not complete at the deadline of the request.", cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &problemError{problem: bodyCut, detail: "Nothing was done: the connection ended before the body did. Send the request again.", cause: err}
	}
	if e, ok := errors.AsType[*bodyError](err); ok {
		return e.problem("Nothing was done")
	}
	return err
}
