package ledger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/messagehub/messagehub/domain"
)

// A Patch changes the part of a row that users may change: its attributes or its ingest id.
type Patch struct {
	attributes []patchOperation
	isIngestID bool
	ingestID   string // new ingest id; "": remove the ingest id
}

// A patchOperation is one operation of a JSON Patch (RFC 6902).
type patchOperation struct {
	pointer string          // JSON pointer to the operation in the request body
	text    json.RawMessage // the operation as it was sent
	kind    string
	path    []string
}

// testOperation is the operation that tests a value and changes nothing.
const testOperation = "test"

const (
	maxPatch      = 64 << 10 // bytes
	maxOperations = 100
	maxPatchDepth = maxDepth + 4 // maxDepth plus four levels: the body's object, the array, the operation, and its value
)

// ParsePatch parses a patch, which is JSON in one of these forms:
//
//   - an array of operations on the attributes,
//   - an object whose member attributes is such an array,
//   - an object whose member ingestId is an array of one operation on the ingest id.
//
// It fails with Invalid for any other text.
func ParsePatch(text []byte) (Patch, error) {
	if len(text) > maxPatch {
		return Patch{}, domain.Errorf(domain.Invalid, "the patch has %d bytes; want at most %d", len(text), maxPatch)
	}
	depth, err := checkJSON(text)
	switch {
	case err != nil:
		return Patch{}, err
	case depth > maxPatchDepth:
		return Patch{}, domain.Errorf(domain.Invalid, "the patch has %d levels; attributes have up to %d", depth, maxDepth)
	}
	text = bytes.TrimSpace(text)
	if text[0] == '[' {
		return parseAttributesPatch("", text)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) == nil && len(members) == 1 {
		if operations, ok := members[attributesField]; ok {
			return parseAttributesPatch("/"+attributesField, operations)
		}
		if operations, ok := members[string(domain.FieldIngestID)]; ok {
			return parseIngestIDPatch("/"+string(domain.FieldIngestID), operations)
		}
	}
	return Patch{}, domain.Errorf(domain.Invalid, "want an array of operations, or an object with attributes or ingestId, and nothing else")
}

// parseOperations returns the operations in an array, and the members of each operation. pointer is
// the JSON pointer to the array in the body.
func parseOperations(pointer string, text []byte) (operations []json.RawMessage, members []map[string]json.RawMessage, err error) {
	if json.Unmarshal(text, &operations) != nil || operations == nil {
		return nil, nil, domain.Errorf(domain.Invalid, "%s: want an array of operations", cmp.Or(pointer, "the body"))
	}
	if len(operations) > maxOperations {
		return nil, nil, domain.Errorf(domain.Invalid, "%s: want at most %d operations, got %d", cmp.Or(pointer, "the body"), maxOperations, len(operations))
	}
	members = make([]map[string]json.RawMessage, len(operations))
	for i, operation := range operations {
		if json.Unmarshal(operation, &members[i]) != nil || members[i] == nil {
			return nil, nil, domain.Errorf(domain.Invalid, "%s/%d: want an object with op and path", pointer, i)
		}
	}
	return operations, members, nil
}

// textMember returns the member called name, which must exist and be a string.
func textMember(pointer string, members map[string]json.RawMessage, name string) (text string, err error) {
	value, has := members[name]
	switch {
	case !has:
		return "", domain.Errorf(domain.Invalid, "%s/%s: missing", pointer, name)
	case value[0] != '"' || json.Unmarshal(value, &text) != nil:
		return "", domain.Errorf(domain.Invalid, "%s/%s: want a string", pointer, name)
	}
	return text, nil
}

func parseAttributesPatch(pointer string, text []byte) (p Patch, err error) {
	texts, members, err := parseOperations(pointer, text)
	if err != nil {
		return p, err
	}
	for i := range texts {
		o, err := parseOperation(pointer+"/"+strconv.Itoa(i), texts[i], members[i])
		if err != nil {
			return p, err
		}
		p.attributes = append(p.attributes, o)
	}
	return p, nil
}

// parseOperation parses an operation on attributes. members are the members of the operation.
func parseOperation(pointer string, text json.RawMessage, members map[string]json.RawMessage) (o patchOperation, err error) {
	o.pointer, o.text = pointer, text
	if o.kind, err = textMember(pointer, members, "op"); err != nil {
		return o, err
	}
	needs := "value"
	switch o.kind {
	case testOperation, "add":
	case "copy":
		needs = "from"
	default:
		return o, domain.Errorf(domain.Invalid, "%s/op: want test, add or copy, got %q", pointer, domain.Shorten(o.kind))
	}
	path, err := textMember(pointer, members, "path")
	if err != nil {
		return o, err
	}
	if o.path, err = parsePointer(path); err != nil {
		return o, domain.Errorf(domain.Invalid, "%s/path: %w", pointer, err)
	}
	if _, has := members[needs]; !has {
		return o, domain.Errorf(domain.Invalid, "%s/%s: missing", pointer, needs)
	}
	if needs == "from" {
		from, err := textMember(pointer, members, needs)
		if err != nil {
			return o, err
		}
		if _, err := parsePointer(from); err != nil {
			return o, domain.Errorf(domain.Invalid, "%s/from: %w", pointer, err)
		}
	}
	return o, nil
}

func parseIngestIDPatch(pointer string, text []byte) (p Patch, err error) {
	_, operations, err := parseOperations(pointer, text)
	if err != nil {
		return p, err
	}
	if len(operations) != 1 {
		return p, domain.Errorf(domain.Invalid, "%s: want one operation, got %d", pointer, len(operations))
	}
	pointer += "/0"
	kind, err := textMember(pointer, operations[0], "op")
	if err != nil {
		return p, err
	}
	path, err := textMember(pointer, operations[0], "path")
	switch {
	case err != nil:
		return p, err
	case path != "/":
		return p, domain.Errorf(domain.Invalid, "%s/path: want /, got %q", pointer, domain.Shorten(path))
	case kind == "remove":
		return Patch{isIngestID: true}, nil
	case kind != "add" && kind != "replace":
		return p, domain.Errorf(domain.Invalid, "%s/op: want add, replace or remove, got %q", pointer, domain.Shorten(kind))
	}
	value, err := textMember(pointer, operations[0], "value")
	if err != nil {
		return p, err
	}
	id, err := domain.ParseIngestID(value)
	if err != nil {
		return p, domain.Errorf(domain.Invalid, "%s/value: %w", pointer, err)
	}
	return Patch{isIngestID: true, ingestID: id}, nil
}

// Amend applies a patch to a row and returns the changed row. If an operation in the patch fails,
// Amend changes nothing and fails with Invalid. It fails with NotFound if the row does not exist.
func (s *Service) Amend(ctx context.Context, id RowID, p Patch) (Row, error) {
	row, err := s.Objects.Amend(ctx, id.Name, id.Row, func(facts domain.ObjectFacts) (domain.ObjectFacts, error) {
		return s.Apply(p, facts)
	})
	if err != nil {
		return Row{}, err
	}
	o, err := s.Objects.Object(ctx, id.Name)
	if err != nil {
		return Row{}, domain.Errorf(domain.Uncertain, "the row is changed, and cannot be read: %w", err)
	}
	return rowOf(&o, row), nil
}

// Apply returns facts with the patch applied, and stores nothing. It fails with Invalid if an
// operation fails, or if the attributes become too large or too deeply nested.
func (s *Service) Apply(p Patch, facts domain.ObjectFacts) (domain.ObjectFacts, error) {
	if p.isIngestID {
		facts.IngestID = p.ingestID
		return facts, nil
	}
	document := []byte(cmp.Or(facts.Attributes, "{}"))
	if string(document) == "null" {
		document = []byte("{}")
	}
	for _, o := range p.attributes {
		var err error
		if document, err = s.applyOperation(document, o); err != nil {
			return domain.ObjectFacts{}, domain.Errorf(domain.Invalid, "%s: %w", o.pointer, err)
		}
	}
	if slices.ContainsFunc(p.attributes, func(o patchOperation) bool { return o.kind != testOperation }) {
		facts.Attributes = string(document)
	}
	return facts, nil
}

func (s *Service) applyOperation(document []byte, o patchOperation) ([]byte, error) {
	if o.kind != testOperation && hasTarget(document, o.path) {
		return nil, domain.Errorf(domain.Invalid, "there is a value at the path, which %s does not replace", o.kind)
	}
	patched, err := s.opts.JSONPatch(document, append(append([]byte{'['}, o.text...), ']'))
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "%s fails: %w", o.kind, err)
	}
	return patched, checkAttributes(patched)
}

// hasTarget reports whether a JSON document contains a value at a path.
func hasTarget(document []byte, path []string) bool {
	at := json.RawMessage(document)
	for _, name := range path {
		switch at[0] {
		case '{':
			var object map[string]json.RawMessage
			if json.Unmarshal(at, &object) != nil || object[name] == nil {
				return false
			}
			at = object[name]
		case '[':
			var array []json.RawMessage
			i, err := strconv.Atoi(name)
			if json.Unmarshal(at, &array) != nil || err != nil || i < 0 || i >= len(array) {
				return false
			}
			at = array[i]
		default:
			return false
		}
	}
	return true
}
