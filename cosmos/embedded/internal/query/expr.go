package query

import (
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// An expr is a compiled expression. slots contains all values that change between rows, as raw JSON; see Query for
// their order.
type expr interface {
	evalRow(slots *Slots) Value
}

// A verbatim expression can return its value exactly as the document spells it, so that numbers and strings keep their
// spelling. rawValue returns nil for undefined.
type verbatim interface {
	rawValue(slots *Slots) []byte
}

// evalRaw returns the value of e as JSON, or nil if it is undefined.
func evalRaw(e expr, slots *Slots) []byte {
	if v, ok := e.(verbatim); ok {
		return v.rawValue(slots)
	}
	return e.evalRow(slots).Append(nil)
}

// appendExpr appends the value of e as JSON. If the value is undefined, it appends nothing and returns false.
func appendExpr(dst []byte, e expr, slots *Slots) ([]byte, bool) {
	if v, ok := e.(verbatim); ok {
		raw := v.rawValue(slots)
		return append(dst, raw...), raw != nil
	}
	size := len(dst)
	dst = e.evalRow(slots).Append(dst)
	return dst, len(dst) > size
}

type constantExpr struct{ value Value }

func (e constantExpr) evalRow(*Slots) Value { return e.value }

// A pathExpr is a path into the document.
type pathExpr struct{ slot int }

func (e pathExpr) evalRow(slots *Slots) Value   { return slots.parseValue(slots.values[e.slot]) }
func (e pathExpr) rawValue(slots *Slots) []byte { return slots.values[e.slot] }

// A variableExpr is the value of a slot, or a path into it. The slot belongs to an alias of FROM or JOIN, a group key
// or an aggregate.
type variableExpr struct {
	slot int
	path rawjson.Path
}

func (e variableExpr) evalRow(slots *Slots) Value { return slots.parseValue(e.rawValue(slots)) }

func (e variableExpr) rawValue(slots *Slots) []byte {
	at := slots.values[e.slot]
	for _, step := range e.path {
		slots.spendRead(len(at))
		at = followStep(at, step)
	}
	return at
}

// followStep returns the value at one step into raw. If an object contains a name twice, it uses the first.
func followStep(raw []byte, step rawjson.Step) (found []byte) {
	switch {
	case len(raw) == 0:
	case step.Array && raw[0] == '[':
		i := 0
		_ = rawjson.EachElement(raw, func(v []byte) bool { // cannot fail, because raw was checked when it was stored
			if i == step.Index {
				found = v
			}
			i++
			return found == nil
		})
	case !step.Array && raw[0] == '{':
		_ = rawjson.EachMember(raw, func(name, v []byte) bool { // as above
			if rawjson.IsName(name, step.Name) {
				found = v
			}
			return found == nil
		})
	}
	return found
}

// An elementExpr follows steps into the value of any expression.
type elementExpr struct {
	base    expr
	indexes []expr
}

func (e elementExpr) evalRow(slots *Slots) Value { return slots.parseValue(e.rawValue(slots)) }

func (e elementExpr) rawValue(slots *Slots) []byte {
	at := evalRaw(e.base, slots)
	for _, index := range e.indexes {
		v := index.evalRow(slots)
		if at == nil || !slots.spendRead(len(at)) {
			return nil
		}
		switch i, whole := v.asInt64(); {
		case v.Kind == String:
			at = followStep(at, rawjson.Step{Name: string(v.Text)})
		case whole && i >= 0:
			at = followStep(at, rawjson.Step{Array: true, Index: int(i)})
		default:
			return nil
		}
	}
	return at
}

// An objectExpr builds an object. It omits undefined properties.
type objectExpr struct {
	names  []string
	values []expr
}

func (e objectExpr) evalRow(slots *Slots) Value {
	return Value{Kind: Object, Text: e.appendTo(nil, slots)}
}

func (e objectExpr) appendTo(dst []byte, slots *Slots) []byte {
	dst = append(dst, '{')
	first := true
	for i, value := range e.values {
		if slots.failure != nil {
			break
		}
		mark := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendQuoted(dst, e.names[i])
		dst = append(dst, ':')
		var ok bool
		if dst, ok = appendExpr(dst, value, slots); !ok {
			dst = dst[:mark]
			slots.spendSteps(1)
			continue
		}
		slots.spendMade(len(dst) - mark)
		first = false
	}
	return append(dst, '}')
}

// An arrayExpr builds an array. It omits undefined items.
type arrayExpr struct{ items []expr }

func (e arrayExpr) evalRow(slots *Slots) Value {
	var b listBuilder
	for _, item := range e.items {
		raw := evalRaw(item, slots)
		if !slots.spendMade(len(raw)) {
			break
		}
		b.addItem(raw)
	}
	return b.arrayValue()
}

// A listBuilder builds the JSON of an array.
type listBuilder struct{ text []byte }

// addItem appends an item. A nil item is undefined and is ignored.
func (b *listBuilder) addItem(raw []byte) {
	if raw == nil {
		return
	}
	separator := byte(',')
	if b.text == nil {
		separator = '['
	}
	b.text = append(append(b.text, separator), raw...)
}

func (b *listBuilder) arrayValue() Value {
	if b.text == nil {
		return Value{Kind: Array, Text: []byte("[]")}
	}
	return Value{Kind: Array, Text: append(b.text, ']')}
}

type ternaryExpr struct{ condition, then, otherwise expr }

func (e ternaryExpr) evalRow(slots *Slots) Value {
	if e.condition.evalRow(slots).IsTrue() {
		return e.then.evalRow(slots)
	}
	return e.otherwise.evalRow(slots)
}

// A coalesceExpr is the first of its values that is not undefined. It may be null.
type coalesceExpr struct{ values []expr }

func (e coalesceExpr) evalRow(slots *Slots) Value {
	for _, value := range e.values {
		if v := value.evalRow(slots); v.Kind != Undefined || !slots.spendSteps(1) {
			return v
		}
	}
	return undefined
}

// A callExpr is a call of a function that depends only on its arguments.
type callExpr struct {
	name  string
	fn    func(args []Value) Value
	args  []expr
	steps func(args []Value) int // returns the steps of a call; nil if they depend only on the size of the arguments
}

func newCall(name string, fn func(args []Value) Value, args []expr) callExpr {
	return callExpr{name, fn, args, functionSteps[name]}
}

func (e callExpr) evalRow(slots *Slots) Value {
	var few [3]Value
	args, size := few[:0], 0
	for _, a := range e.args {
		v := a.evalRow(slots)
		args, size = append(args, v), size+len(v.Text)
	}
	if !slots.spendSteps(callSteps+size/madePerStep) || e.steps != nil && !slots.spendSteps(e.steps(args)) {
		return undefined
	}
	v := e.fn(args)
	if v.Kind == Array { // the elements of an array count separately
		slots.spendSteps(len(v.Text) / elementPerStep)
	} else {
		slots.spendMade(len(v.Text))
	}
	return v
}
