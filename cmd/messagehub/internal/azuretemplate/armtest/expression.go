package armtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// evaluateValue evaluates a value of a template. A text in brackets is an
// expression.
func (e *evaluation) evaluateValue(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "[[") {
			return v[1:], nil
		}
		if !strings.HasPrefix(v, "[") || !strings.HasSuffix(v, "]") {
			return v, nil
		}
		p := &expressionParser{e: e, rest: v[1 : len(v)-1]}
		value, err := p.readExpression(true)
		if err == nil && strings.TrimSpace(p.rest) != "" {
			err = fmt.Errorf("unexpected %q", p.rest)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v, err)
		}
		if _, isRuntime := value.(*runtimeValue); isRuntime {
			return nil, fmt.Errorf("%s: a property of the resource is missing", v)
		}
		return value, nil
	case []any:
		all := make([]any, len(v))
		for i, x := range v {
			value, err := e.evaluateValue(x)
			if err != nil {
				return nil, err
			}
			all[i] = value
		}
		return all, nil
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, x := range v {
			key, err := e.evaluateValue(name)
			if err != nil {
				return nil, err
			}
			value, err := e.evaluateValue(x)
			if err != nil {
				return nil, err
			}
			all[fmt.Sprint(key)] = value
		}
		return all, nil
	default:
		return v, nil
	}
}

// A runtimeValue stands for a property of a resource that Azure sets only when
// it creates the resource.
type runtimeValue struct {
	of   *Resource
	path []string
}

// An expressionParser parses an expression and evaluates it at the same time.
type expressionParser struct {
	e    *evaluation
	rest string
}

func (p *expressionParser) skipSpace() { p.rest = strings.TrimLeft(p.rest, " ") }

func (p *expressionParser) acceptToken(c string) bool {
	p.skipSpace()
	rest, found := strings.CutPrefix(p.rest, c)
	if found {
		p.rest = rest
	}
	return found
}

// readExpression parses an expression. It evaluates the expression only if
// isWanted is true; isWanted is false in the branch that a call of if does not
// choose.
func (p *expressionParser) readExpression(isWanted bool) (any, error) {
	p.skipSpace()
	switch {
	case strings.HasPrefix(p.rest, "'"):
		return p.readQuoted()
	case p.rest != "" && strings.ContainsRune("-0123456789", rune(p.rest[0])):
		end := len(p.rest) - len(strings.TrimLeft(p.rest, "-0123456789"))
		n, err := strconv.ParseFloat(p.rest[:end], 64)
		p.rest = p.rest[end:]
		return n, err
	}
	name := p.readWord()
	if name == "" || !p.acceptToken("(") {
		return nil, fmt.Errorf("want a function at %q", p.rest)
	}
	value, err := p.readFunction(name, isWanted)
	for err == nil && strings.HasPrefix(p.rest, ".") {
		p.rest = p.rest[1:]
		value, err = memberOf(value, p.readWord(), isWanted)
	}
	if r, isRuntime := value.(*runtimeValue); err == nil && isRuntime && len(r.path) > 0 {
		value = p.e.options.Runtime(r.of, strings.Join(r.path, "."))
	}
	return value, err
}

func (p *expressionParser) readWord() string {
	end := 0
	for end < len(p.rest) && (p.rest[end] == '_' || p.rest[end] >= '0' && p.rest[end] <= '9' || p.rest[end]|0x20 >= 'a' && p.rest[end]|0x20 <= 'z') {
		end++
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

func (p *expressionParser) readQuoted() (string, error) {
	var b strings.Builder
	for i := 1; i < len(p.rest); i++ {
		if p.rest[i] != '\'' {
			b.WriteByte(p.rest[i])
			continue
		}
		if i+1 < len(p.rest) && p.rest[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		p.rest = p.rest[i+1:]
		return b.String(), nil
	}
	return "", errors.New("a text does not end")
}

func (p *expressionParser) readFunction(name string, isWanted bool) (any, error) {
	var args []any
	for !p.acceptToken(")") {
		if len(args) > 0 && !p.acceptToken(",") {
			return nil, fmt.Errorf("want a comma at %q", p.rest)
		}
		isArgWanted := isWanted
		if name == "if" && len(args) > 0 && isWanted {
			isArgWanted = args[0] == (len(args) == 1)
		}
		value, err := p.readExpression(isArgWanted)
		if err != nil {
			return nil, err
		}
		args = append(args, value)
	}
	f, known := functions[name]
	switch {
	case !known:
		return nil, fmt.Errorf("no function %s", name)
	case !isWanted && name == "parameters":
		_, err := f(p.e, args) // called even if !isWanted, so that an unknown parameter is an error
		return nil, err
	case !isWanted:
		return nil, nil
	}
	value, err := f(p.e, args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

func memberOf(of any, name string, isWanted bool) (any, error) {
	if !isWanted {
		return nil, nil
	}
	switch of := of.(type) {
	case map[string]any:
		value, exists := of[name]
		if !exists {
			return nil, fmt.Errorf("no member %s", name)
		}
		return value, nil
	case *runtimeValue:
		return &runtimeValue{of.of, append(of.path, name)}, nil
	default:
		return nil, fmt.Errorf("%v has no members", of)
	}
}

var errArguments = errors.New("wrong arguments")

var functions map[string]func(*evaluation, []any) (any, error)

func init() { //nolint:gochecknoinits // the table and the evaluation use each other
	functions = map[string]func(*evaluation, []any) (any, error){
		"parameters": func(e *evaluation, a []any) (any, error) {
			name, err := asTexts(a)
			if err != nil || len(name) != 1 {
				return nil, errArguments
			}
			return e.parameterValue(name[0])
		},
		"resourceGroup": func(*evaluation, []any) (any, error) {
			return map[string]any{"id": "/subscriptions/s/resourceGroups/g", "location": "westeurope"}, nil
		},
		"resourceId": func(e *evaluation, a []any) (any, error) {
			t, err := asTexts(a)
			if err != nil || len(t) < 2 || strings.Count(t[0], "/") != len(t)-1 {
				return nil, errArguments
			}
			named := makeID(t[0], t[1:])
			e.named = append(e.named, named)
			return named, e.checkDeclared(named)
		},
		"subscriptionResourceId": func(_ *evaluation, a []any) (any, error) {
			t, err := asTexts(a)
			if err != nil || len(t) != 2 {
				return nil, errArguments
			}
			return "/subscriptions/s/providers/" + makeID(t[0], t[1:]), nil
		},
		"reference": func(e *evaluation, a []any) (any, error) {
			t, err := asTexts(a)
			if err != nil || len(t) != 2 {
				return nil, errArguments
			}
			r := e.declared[t[0]]
			switch {
			case r == nil:
				return nil, e.checkDeclared(t[0])
			case r.APIVersion != t[1]:
				return nil, fmt.Errorf("%s has the version %s, not %s", t[0], r.APIVersion, t[1])
			case r.Type == deployments:
				outputs := make(map[string]any)
				for name, value := range e.nested[t[0]].Outputs {
					outputs[name] = map[string]any{"value": value}
				}
				return map[string]any{"outputs": outputs}, nil
			}
			return &runtimeValue{of: r}, nil
		},
		"format": func(_ *evaluation, a []any) (any, error) {
			if len(a) == 0 {
				return nil, errArguments
			}
			text, err := asTexts(a)
			if err != nil {
				return nil, err
			}
			pairs := []string{"{{", "{", "}}", "}"}
			for i, arg := range text[1:] {
				hole := "{" + strconv.Itoa(i) + "}"
				if !strings.Contains(text[0], hole) {
					return nil, fmt.Errorf("no %s in %q", hole, text[0])
				}
				pairs = append(pairs, hole, arg)
			}
			return strings.NewReplacer(pairs...).Replace(text[0]), nil
		},
		"concat": func(_ *evaluation, a []any) (any, error) {
			all := []any{}
			for _, x := range a {
				list, ok := x.([]any)
				if !ok {
					return nil, errArguments
				}
				all = append(all, list...)
			}
			return all, nil
		},
		"union": func(_ *evaluation, a []any) (any, error) {
			all := make(map[string]any)
			for _, x := range a {
				o, ok := x.(map[string]any)
				if !ok {
					return nil, errArguments
				}
				for name, value := range o {
					all[name] = value
				}
			}
			return all, nil
		},
		"if": func(_ *evaluation, a []any) (any, error) {
			if len(a) != 3 {
				return nil, errArguments
			}
			switch a[0] {
			case true:
				return a[1], nil
			case false:
				return a[2], nil
			}
			return nil, errArguments
		},
		"empty": func(_ *evaluation, a []any) (any, error) {
			t, err := asTexts(a)
			if err != nil || len(t) != 1 {
				return nil, errArguments
			}
			return t[0] == "", nil
		},
		"not": func(_ *evaluation, a []any) (any, error) {
			b, err := asBools(a)
			if err != nil || len(b) != 1 {
				return nil, errArguments
			}
			return !b[0], nil
		},
		"and": func(_ *evaluation, a []any) (any, error) {
			b, err := asBools(a)
			if err != nil || len(b) != 2 {
				return nil, errArguments
			}
			return b[0] && b[1], nil
		},
		"equals": func(_ *evaluation, a []any) (any, error) {
			t, err := asTexts(a)
			if err != nil || len(t) != 2 {
				return nil, errArguments
			}
			return t[0] == t[1], nil
		},
		"string": func(_ *evaluation, a []any) (any, error) {
			if len(a) != 1 {
				return nil, errArguments
			}
			return fmt.Sprint(a[0]), nil
		},
		"json": func(_ *evaluation, a []any) (any, error) {
			t, err := asTexts(a)
			if err != nil || len(t) != 1 {
				return nil, errArguments
			}
			var value any
			err = json.Unmarshal([]byte(t[0]), &value)
			return value, err
		},
		"uniqueString": func(_ *evaluation, a []any) (any, error) {
			t, err := asTexts(a)
			return hashTexts(t)[:13], err
		},
		"guid": func(_ *evaluation, a []any) (any, error) {
			t, err := asTexts(a)
			d := hashTexts(t)
			return d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:32], err
		},
		"createObject": func(_ *evaluation, a []any) (any, error) {
			o := make(map[string]any)
			for i := 0; i < len(a); i += 2 {
				name, ok := a[i].(string)
				if !ok || i+1 == len(a) {
					return nil, errArguments
				}
				o[name] = a[i+1]
			}
			return o, nil
		},
		"createArray": func(_ *evaluation, a []any) (any, error) { return append([]any{}, a...), nil },
		"null":        func(*evaluation, []any) (any, error) { return nil, nil },
		"true":        func(*evaluation, []any) (any, error) { return true, nil },
		"false":       func(*evaluation, []any) (any, error) { return false, nil },
	}
}

func (e *evaluation) checkDeclared(id string) error {
	if e.declared[id] == nil && len(e.declared) == len(e.document.Resources) { // all resources are declared, so no resource has the id
		return fmt.Errorf("no resource %s", id)
	}
	return nil
}

func hashTexts(t []string) string {
	sum := sha256.Sum256([]byte(strings.Join(t, "\x00")))
	return hex.EncodeToString(sum[:])
}

func asTexts(a []any) ([]string, error) {
	all := make([]string, len(a))
	for i, x := range a {
		t, ok := x.(string)
		if !ok {
			return nil, fmt.Errorf("%v is no text", x)
		}
		all[i] = t
	}
	return all, nil
}

func asBools(a []any) ([]bool, error) {
	all := make([]bool, len(a))
	for i, x := range a {
		b, ok := x.(bool)
		if !ok {
			return nil, fmt.Errorf("%v is no bool", x)
		}
		all[i] = b
	}
	return all, nil
}
