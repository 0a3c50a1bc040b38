package query

import (
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// An expr is a compiled expression. slots holds, as raw JSON, everything that
// changes from one row to the next; see Query for their order.
type expr interface {
	eval(slots *Slots) Value
}

// A verbatim expression can give its value as it is written in the document,
// so that a number or a string keeps its form. nil is undefined.
type verbatim interface {
	raw(slots *Slots) []byte
}

// rawOf is the value of e as JSON, nil if it is undefined.
func rawOf(e expr, slots *Slots) []byte {
	if v, ok := e.(verbatim); ok {
		return v.raw(slots)
	}
	return e.eval(slots).Append(nil)
}

// appendExpr appends the value of e, nothing if it is undefined.
func appendExpr(dst []byte, e expr, slots *Slots) ([]byte, bool) {
	if v, ok := e.(verbatim); ok {
		raw := v.raw(slots)
		return append(dst, raw...), raw != nil
	}
	v := e.eval(slots)
	return v.Append(dst), v.Kind != Undefined
}

type constant struct{ value Value }

func (e constant) eval(*Slots) Value { return e.value }

// A property is a path into the document.
type property struct{ slot int }

func (e property) eval(slots *Slots) Value { return slots.parse(slots.values[e.slot]) }
func (e property) raw(slots *Slots) []byte { return slots.values[e.slot] }

// A variable is what an alias of FROM or JOIN stands for in this row, or a
// path into it, or the key or an aggregate of a group.
type variable struct {
	slot int
	path rawjson.Path
}

func (e variable) eval(slots *Slots) Value { return slots.parse(e.raw(slots)) }

func (e variable) raw(slots *Slots) []byte {
	at := slots.values[e.slot]
	for _, step := range e.path {
		slots.spendRead(len(at))
		at = follow(at, step)
	}
	return at
}

// follow takes one step into a raw value; of two equal names the first counts.
func follow(raw []byte, step rawjson.Step) (found []byte) {
	switch {
	case len(raw) == 0:
	case step.Array && raw[0] == '[':
		i := 0
		_ = rawjson.EachElement(raw, func(v []byte) bool { // raw was checked when it was stored
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

// An element is the value at the end of steps into a value that is not a path.
type element struct {
	base    expr
	indexes []expr
}

func (e element) eval(slots *Slots) Value { return slots.parse(e.raw(slots)) }

func (e element) raw(slots *Slots) []byte {
	at := rawOf(e.base, slots)
	for _, index := range e.indexes {
		v := index.eval(slots)
		if at == nil || !slots.spendRead(len(at)) {
			return nil
		}
		switch i, whole := v.whole(); {
		case v.Kind == String:
			at = follow(at, rawjson.Step{Name: string(v.Text)})
		case whole && i >= 0:
			at = follow(at, rawjson.Step{Array: true, Index: int(i)})
		default:
			return nil
		}
	}
	return at
}

// An object leaves out properties that are undefined.
type object struct {
	names  []string
	values []expr
}

func (e object) eval(slots *Slots) Value {
	return Value{Kind: Object, Text: e.append(nil, slots)}
}

func (e object) append(dst []byte, slots *Slots) []byte {
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
			slots.spend(1)
			continue
		}
		slots.spendMade(len(dst) - mark)
		first = false
	}
	return append(dst, '}')
}

// An array leaves out items that are undefined.
type array struct{ items []expr }

func (e array) eval(slots *Slots) Value {
	var b listBuilder
	for _, item := range e.items {
		raw := rawOf(item, slots)
		if !slots.spendMade(len(raw)) {
			break
		}
		b.add(raw)
	}
	return b.value()
}

// A listBuilder writes an array.
type listBuilder struct{ text []byte }

// add appends an item; nil is undefined and is left out.
func (b *listBuilder) add(raw []byte) {
	if raw == nil {
		return
	}
	separator := byte(',')
	if b.text == nil {
		separator = '['
	}
	b.text = append(append(b.text, separator), raw...)
}

func (b *listBuilder) value() Value {
	if b.text == nil {
		return Value{Kind: Array, Text: []byte("[]")}
	}
	return Value{Kind: Array, Text: append(b.text, ']')}
}

type ternary struct{ condition, then, otherwise expr }

func (e ternary) eval(slots *Slots) Value {
	if e.condition.eval(slots).IsTrue() {
		return e.then.eval(slots)
	}
	return e.otherwise.eval(slots)
}

// A coalesce is the first of its values that is defined. null is a value.
type coalesce struct{ values []expr }

func (e coalesce) eval(slots *Slots) Value {
	for _, value := range e.values {
		if v := value.eval(slots); v.Kind != Undefined || !slots.spend(1) {
			return v
		}
	}
	return undefined
}

// A call is a function of its arguments' values.
type call struct {
	name  string
	fn    func(args []Value) Value
	args  []expr
	steps func(args []Value) int // nil: those for the size of the arguments
}

func newCall(name string, fn func(args []Value) Value, args []expr) call {
	return call{name, fn, args, functionSteps[name]}
}

func (e call) eval(slots *Slots) Value {
	var few [3]Value
	args, size := few[:0], 0
	for _, a := range e.args {
		v := a.eval(slots)
		args, size = append(args, v), size+len(v.Text)
	}
	if !slots.spend(callSteps+size/madePerStep) || e.steps != nil && !slots.spend(e.steps(args)) {
		return undefined
	}
	v := e.fn(args)
	if v.Kind == Array { // its elements are made one by one
		slots.spend(len(v.Text) / elementPerStep)
	} else {
		slots.spendMade(len(v.Text))
	}
	return v
}
