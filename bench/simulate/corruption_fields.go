package simulate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/bench/simulate/random"
)

// A fieldRef refers to a field of a document, at any depth.
type fieldRef struct {
	path   string
	object map[string]any // object that contains the field; nil if the field is an element of list
	list   []any
	name   string
	index  int
}

func (s *fieldRef) value() any {
	if s.object != nil {
		return s.object[s.name]
	}
	return s.list[s.index]
}

func (s *fieldRef) setValue(value any) {
	if s.object != nil {
		s.object[s.name] = value
	} else {
		s.list[s.index] = value
	}
}

// allFields returns all fields of a document except its id and its partition key.
func (d *storedItem) allFields() (all []fieldRef) {
	var visit func(path string, value any)
	visit = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				if path == "" && (name == "id" || name == partitionKeyOf(d.container)) {
					continue
				}
				all = append(all, fieldRef{path: path + "/" + name, object: value, name: name})
				visit(path+"/"+name, value[name])
			}
		case []any:
			for i := range value {
				all = append(all, fieldRef{path: fmt.Sprintf("%s/%d", path, i), list: value, index: i})
				visit(fmt.Sprintf("%s/%d", path, i), value[i])
			}
		}
	}
	visit("", d.fields)
	return all
}

// clone returns a deep copy of the document.
func (d *storedItem) clone() storedItem {
	c := *d
	c.fields = cloneValue(d.fields).(map[string]any)
	return c
}

func cloneValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		c := make(map[string]any, len(value))
		for name, v := range value {
			c[name] = cloneValue(v)
		}
		return c
	case []any:
		c := make([]any, len(value))
		for i, v := range value {
			c[i] = cloneValue(v)
		}
		return c
	}
	return value
}

// corruptField damages one field of a document, and describes the damage.
func (d *storedItem) corruptField(rng random.Source) string {
	all := d.allFields()
	if len(all) == 0 {
		return "is left alone"
	}
	s := all[rng.IntN(len(all))]
	switch rng.IntN(6) {
	case 0:
		s.setValue(retypeValue(s.value()))
		return s.path + " has another type"
	case 1:
		if s.object != nil {
			delete(s.object, s.name)
			return s.path + " is missing"
		}
		s.setValue(nil)
		return s.path + " is null"
	case 2:
		if inner, ok := s.value().(map[string]any); ok && len(inner) > 0 {
			names := slices.Sorted(maps.Keys(inner))
			old, other := names[rng.IntN(len(names))], strangeNames[rng.IntN(len(strangeNames))]
			inner[other] = inner[old]
			delete(inner, old)
			return s.path + ": " + old + " is called " + other
		}
	}
	s.setValue(changeValue(rng, s.value()))
	text := fmt.Sprint(s.value())
	return fmt.Sprintf("%s is %q", s.path, text[:min(len(text), 40)])
}

// strangeNames are invalid or unknown names that replace the names of cabinets and origins.
var strangeNames = [...]string{"", "|", "Nobody|type-a", "TimeSeries|", "TimeSeries|type-z", "Nobody", "\u00e5|\u00e5"}

// retypeValue returns a value whose type differs from that of value.
func retypeValue(value any) any {
	switch value.(type) {
	case string:
		return 7
	case map[string]any:
		return []any{"x"}
	default:
		return map[string]any{"x": "y"}
	}
}

// changeValue returns a different value of the same type.
func changeValue(rng random.Source, value any) any {
	switch value := value.(type) {
	case bool:
		return !value
	case json.Number:
		n, err := value.Int64()
		if err != nil {
			return json.Number("0.5")
		}
		return []int64{n + 1, n - 1, 0, -1, -n - 1, n * 1000, 1 << 33, 1 << 52}[rng.IntN(8)]
	case string:
		return changeText(rng, value)
	case []any:
		if len(value) > 0 && rng.IntN(2) == 0 {
			return slices.Concat(value, value[:1])
		}
		return []any{}
	case map[string]any:
		return map[string]any{}
	}
	return "something"
}

func changeText(rng random.Source, text string) string {
	if raw, err := base64.StdEncoding.DecodeString(text); err == nil && len(raw) > 8 {
		switch rng.IntN(3) {
		case 0:
			raw = raw[:rng.IntN(len(raw))]
		case 1:
			raw[rng.IntN(len(raw))] ^= 1 << rng.IntN(8)
		default:
			raw = append(raw, raw[:4]...)
		}
		if rng.IntN(4) > 0 {
			return base64.StdEncoding.EncodeToString(raw)
		}
	}
	others := []string{"", "!" + text, text + "x", text[:len(text)/2], "dequeued", "open", "7", "-1", "99999999999999999999", "no\u0000thing", strings.Repeat("x", 300)}
	return others[rng.IntN(len(others))]
}
