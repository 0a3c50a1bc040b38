package simulate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A spot is a field of a document, at any depth.
type spot struct {
	path   string
	within map[string]any // that has it; nil: it is in a list
	list   []any
	name   string
	at     int
}

func (s *spot) get() any {
	if s.within != nil {
		return s.within[s.name]
	}
	return s.list[s.at]
}

func (s *spot) set(value any) {
	if s.within != nil {
		s.within[s.name] = value
	} else {
		s.list[s.at] = value
	}
}

// spots returns all fields of a document but those by which it is found.
func (d *document) spots() (all []spot) {
	var look func(path string, value any)
	look = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				if path == "" && (name == "id" || name == keyOf(d.container)) {
					continue
				}
				all = append(all, spot{path: path + "/" + name, within: value, name: name})
				look(path+"/"+name, value[name])
			}
		case []any:
			for i := range value {
				all = append(all, spot{path: fmt.Sprintf("%s/%d", path, i), list: value, at: i})
				look(fmt.Sprintf("%s/%d", path, i), value[i])
			}
		}
	}
	look("", d.fields)
	return all
}

// copied returns the document with fields of its own.
func (d *document) copied() document {
	c := *d
	c.fields = copied(d.fields).(map[string]any)
	return c
}

func copied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		c := make(map[string]any, len(value))
		for name, v := range value {
			c[name] = copied(v)
		}
		return c
	case []any:
		c := make([]any, len(value))
		for i, v := range value {
			c[i] = copied(v)
		}
		return c
	}
	return value
}

// damage makes a document one that no hub has written, and says how.
func (d *document) damage(dice dice) string {
	all := d.spots()
	if len(all) == 0 {
		return "is left alone"
	}
	s := all[dice.n(len(all))]
	switch dice.n(6) {
	case 0:
		s.set(mistyped(s.get()))
		return s.path + " has another type"
	case 1:
		if s.within != nil {
			delete(s.within, s.name)
			return s.path + " is missing"
		}
		s.set(nil)
		return s.path + " is null"
	case 2:
		if inner, ok := s.get().(map[string]any); ok && len(inner) > 0 {
			names := slices.Sorted(maps.Keys(inner))
			old, other := names[dice.n(len(names))], strangeNames[dice.n(len(strangeNames))]
			inner[other] = inner[old]
			delete(inner, old)
			return s.path + ": " + old + " is called " + other
		}
	}
	s.set(changed(dice, s.get()))
	text := fmt.Sprint(s.get())
	return fmt.Sprintf("%s is %q", s.path, text[:min(len(text), 40)])
}

// strangeNames are in the place of a cabinet's or an origin's.
var strangeNames = [...]string{"", "|", "Nobody|type-a", "TimeSeries|", "TimeSeries|type-z", "Nobody", "\u00e5|\u00e5"}

// mistyped returns a value of another type.
func mistyped(value any) any {
	switch value.(type) {
	case string:
		return 7
	case map[string]any:
		return []any{"x"}
	default:
		return map[string]any{"x": "y"}
	}
}

// changed returns another value of the same type.
func changed(d dice, value any) any {
	switch value := value.(type) {
	case bool:
		return !value
	case json.Number:
		n, err := value.Int64()
		if err != nil {
			return json.Number("0.5")
		}
		return []int64{n + 1, n - 1, 0, -1, -n - 1, n * 1000, 1 << 33, 1 << 52}[d.n(8)]
	case string:
		return changedText(d, value)
	case []any:
		if len(value) > 0 && d.n(2) == 0 {
			return slices.Concat(value, value[:1])
		}
		return []any{}
	case map[string]any:
		return map[string]any{}
	}
	return "something"
}

func changedText(d dice, text string) string {
	if raw, err := base64.StdEncoding.DecodeString(text); err == nil && len(raw) > 8 {
		switch d.n(3) {
		case 0:
			raw = raw[:d.n(len(raw))]
		case 1:
			raw[d.n(len(raw))] ^= 1 << d.n(8)
		default:
			raw = append(raw, raw[:4]...)
		}
		if d.n(4) > 0 {
			return base64.StdEncoding.EncodeToString(raw)
		}
	}
	others := []string{"", "!" + text, text + "x", text[:len(text)/2], "dequeued", "open", "7", "-1", "99999999999999999999", "no\u0000thing", strings.Repeat("x", 300)}
	return others[d.n(len(others))]
}
