package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// maxPatch is the maximum number of operations in a patch.
const maxPatch = 10

// A PatchDoc is the checked body of a patch request.
type PatchDoc struct {
	condition  *query.Query // nil: the patch has no condition
	operations []patchOp
	grows      int // approximate number of bytes that the patch can add to the document
}

type patchOp struct {
	op    string
	path  []string
	text  string   // the path as the client sent it
	from  []string // source path of a move
	value []byte   // compact JSON; nil if op is remove
}

// conditionLimits limit the condition of a patch, because no other write can run during its evaluation.
var conditionLimits = query.Limits{Document: query.DefaultLimits.Document / 10}

// evaluateCondition reports whether the condition of the patch is true for doc.
func (p *PatchDoc) evaluateCondition(ctx context.Context, doc []byte) (bool, error) {
	if p.condition == nil {
		return true, nil
	}
	slots := p.condition.NewSlots(ctx, conditionLimits)
	p.condition.Extract(doc, slots)
	return p.condition.Holds(slots), slots.Failure()
}

// ParsePatch checks the body of a patch request. A patch without a condition may be a bare array of
// operations.
func (c *Container) ParsePatch(ctx context.Context, body []byte) (*PatchDoc, error) {
	var raw struct {
		Condition  *string `json:"condition"`
		Operations []struct {
			Op    string          `json:"op"`
			Path  *string         `json:"path"`
			From  *string         `json:"from"`
			Value json.RawMessage `json:"value"`
		} `json:"operations"`
	}
	var into any = &raw
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		into = &raw.Operations
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return nil, badRequest("patch: %v", err)
	}
	if len(raw.Operations) == 0 || len(raw.Operations) > maxPatch {
		return nil, badRequest("a patch wants 1 to %d operations, found %d", maxPatch, len(raw.Operations))
	}
	p := &PatchDoc{}
	if raw.Condition != nil {
		condition, err := query.ParseCondition(ctx, *raw.Condition, query.WithClock(c.clock))
		if wrong, ok := errors.AsType[*query.Error](err); ok {
			return nil, badRequest("patch condition: %v", wrong)
		}
		if err != nil {
			return nil, err
		}
		p.condition = condition
	}
	for i, r := range raw.Operations {
		op := patchOp{op: r.Op}
		if r.Path == nil {
			return nil, badRequest("patch operation %d has no path", i)
		}
		op.text = *r.Path
		var err error
		if op.path, err = splitPointer(op.text); err != nil {
			return nil, err
		}
		switch r.Op {
		case "remove":
		case "move":
			if r.From == nil {
				return nil, badRequest("patch operation %d (move %s) has no from", i, op.text)
			}
			if op.from, err = splitPointer(*r.From); err != nil {
				return nil, err
			}
			if isPrefix(op.from, op.path) {
				return nil, badRequest("patch operation %d: %s is %s or within it", i, op.text, *r.From)
			}
		case "add", "set", "replace", "incr":
			if r.Value == nil {
				return nil, badRequest("patch operation %d (%s %s) has no value", i, r.Op, op.text)
			}
			if op.value, err = rawjson.Compact(nil, r.Value); err != nil {
				return nil, badRequest("patch operation %d: %v", i, err)
			}
		default:
			return nil, badRequest("patch operation %q is not supported; want add, set, replace, remove, incr or move", r.Op)
		}
		if r.Op == "incr" && query.ParseValue(op.value).Kind != query.Number {
			return nil, badRequest("patch operation %d: incr wants a number", i)
		}
		if len(op.path)+rawjson.Depth(op.value) > rawjson.MaxDepth {
			return nil, badRequest("patch operation %d nests deeper than %d levels", i, rawjson.MaxDepth)
		}
		p.grows += len(op.value) + len(op.text) + 16
		p.operations = append(p.operations, op)
	}
	return p, nil
}

// splitPointer splits a JSON pointer into unescaped steps.
func splitPointer(path string) ([]string, error) {
	if len(path) < 2 || path[0] != '/' {
		return nil, badRequest("patch path %q must start with / and name a property", path)
	}
	steps := strings.Split(path[1:], "/")
	for i, s := range steps {
		if s == "" {
			return nil, badRequest("patch path %q has an empty step", path)
		}
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(s)
	}
	if isSystem([]byte(`"`+steps[0]+`"`)) || steps[0] == "id" {
		return nil, badRequest("patch path %q: this property cannot be changed", path)
	}
	return steps, nil
}

// applyAll executes the operations in order. doc must be compact; its memory is reused.
func (p *PatchDoc) applyAll(doc []byte, c *Container) ([]byte, error) {
	for _, op := range p.operations {
		for i, key := range c.keyPaths {
			if isAffected(op.path, key) || op.op == "move" && isAffected(op.from, key) {
				return nil, badRequest("patch path %q: the partition key %s cannot be changed", op.text, c.keyText[i])
			}
		}
		var err error
		if doc, err = op.applyTo(doc); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// isAffected reports whether a change at path can change the value at key.
func isAffected(path []string, key rawjson.Path) bool {
	for i := 0; i < len(path) && i < len(key); i++ {
		if path[i] != key[i].Name {
			return false
		}
	}
	return true
}

// A patchTarget is the location of a path in a document: an existing value, or the place for a new one.
type patchTarget struct {
	start, end int  // bounds of the existing value
	from       int  // start of the existing member, including its name, or of the existing element
	array      bool // the parent is an array
	exists     bool
	insert     int  // where a new member or element must be inserted
	first      bool // the parent is empty
}

// isPrefix reports whether path equals prefix or is below it.
func isPrefix(prefix, path []string) bool {
	return len(path) >= len(prefix) && slices.Equal(prefix, path[:len(prefix)])
}

// applyMove removes the value at from and adds it at path.
func (o patchOp) applyMove(doc []byte) ([]byte, error) {
	source := patchOp{op: o.op, path: o.from, text: "/" + strings.Join(o.from, "/")}
	at, err := source.locateTarget(doc)
	if err != nil {
		return nil, err
	}
	if !at.exists {
		return nil, badRequest("move %s: there is nothing to move", source.text)
	}
	value := bytes.Clone(doc[at.start:at.end])
	if len(o.path)+rawjson.Depth(value) > rawjson.MaxDepth {
		return nil, badRequest("move %s: the document would nest deeper than %d levels", o.text, rawjson.MaxDepth)
	}
	return patchOp{op: "add", path: o.path, text: o.text, value: value}.applyTo(removeMember(doc, at))
}

func (o patchOp) applyTo(doc []byte) ([]byte, error) {
	if o.op == "move" {
		return o.applyMove(doc)
	}
	at, err := o.locateTarget(doc)
	if err != nil {
		return nil, err
	}
	switch o.op {
	case "remove":
		if !at.exists {
			return nil, badRequest("remove %s: there is nothing to remove", o.text)
		}
		return removeMember(doc, at), nil
	case "replace":
		if !at.exists {
			return nil, badRequest("replace %s: there is nothing to replace", o.text)
		}
	case "incr":
		if at.exists {
			sum, err := o.incrementNumber(doc[at.start:at.end])
			return spliceBytes(doc, at.start, at.end, sum), err
		}
	case "add":
		if at.exists && at.array { // insert the value before the existing element
			return spliceBytes(doc, at.start, at.start, append(bytes.Clone(o.value), ',')), nil
		}
	}
	if at.exists {
		return spliceBytes(doc, at.start, at.end, o.value), nil
	}
	var text []byte
	if !at.first {
		text = append(text, ',')
	}
	if !at.array {
		text = rawjson.AppendQuoted(text, o.path[len(o.path)-1])
		text = append(text, ':')
	}
	return spliceBytes(doc, at.insert, at.insert, append(text, o.value...)), nil
}

func (o patchOp) incrementNumber(raw []byte) ([]byte, error) {
	v := query.ParseValue(raw)
	if v.Kind != query.Number {
		return nil, badRequest("incr %s: the value there is not a number", o.text)
	}
	sum := v.Num + query.ParseValue(o.value).Num
	if math.IsInf(sum, 0) {
		return nil, badRequest("incr %s: the sum is too large for a double", o.text)
	}
	return rawjson.AppendNumber(nil, sum), nil
}

func spliceBytes(doc []byte, start, end int, with []byte) []byte {
	if start == end && end == len(doc)-1 { // a new last member is appended in place, without copying the document
		last := doc[end]
		return append(append(doc[:end], with...), last)
	}
	out := make([]byte, 0, len(doc)-(end-start)+len(with)+systemPropertiesSize)
	out = append(out, doc[:start]...)
	out = append(out, with...)
	return append(out, doc[end:]...)
}

// removeMember removes a member or element and one comma.
func removeMember(doc []byte, at patchTarget) []byte {
	from, end := at.from, at.end
	if doc[end] == ',' {
		end++
	} else if doc[from-1] == ',' {
		from--
	}
	return spliceBytes(doc, from, end, nil)
}

// locateTarget locates the path in doc. All steps except the last must exist.
func (o patchOp) locateTarget(doc []byte) (patchTarget, error) {
	start, end := 0, len(doc)
	for i, step := range o.path {
		at, err := findChild(doc, start, end, step)
		if err != nil {
			return patchTarget{}, badRequest("%s %s: %v", o.op, o.text, err)
		}
		if i == len(o.path)-1 {
			return at, nil
		}
		if !at.exists {
			return patchTarget{}, badRequest("%s %s: %q does not exist", o.op, o.text, step)
		}
		start, end = at.start, at.end
	}
	return patchTarget{}, badRequest("%s %s: empty path", o.op, o.text)
}

func findChild(doc []byte, start, end int, step string) (patchTarget, error) {
	parent := doc[start:end]
	at := patchTarget{insert: end - 1, first: len(parent) == 2, array: parent[0] == '['}
	// offset returns the index of part in doc
	offset := func(part []byte) int { return cap(doc) - cap(part) }
	if parent[0] == '{' {
		err := rawjson.EachMember(parent, func(name, value []byte) bool {
			if rawjson.IsName(name, step) {
				at.exists, at.from, at.start = true, offset(name), offset(value)
				at.end = at.start + len(value)
			}
			return !at.exists
		})
		return at, err
	}
	if parent[0] != '[' {
		return at, badRequest("the value above %q is not an object or array", step)
	}
	index, count := -1, 0
	if step != "-" {
		n, err := strconv.ParseUint(step, 10, 31)
		if err != nil || strconv.FormatUint(n, 10) != step {
			return at, badRequest("%q is not an array index", step)
		}
		index = int(n)
	}
	err := rawjson.EachElement(parent, func(value []byte) bool {
		if count == index {
			at.exists, at.start = true, offset(value)
			at.from, at.end = at.start, at.start+len(value)
		}
		count++
		return !at.exists
	})
	if err == nil && !at.exists && index > count {
		err = badRequest("index %d is beyond the end of an array of %d", index, count)
	}
	return at, err
}
