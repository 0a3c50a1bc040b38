package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// maxDepth bounds nested expressions, so that no query can exhaust the stack.
const maxDepth = 100

type parser struct {
	tokens []token
	pos    int
	depth  int
	params map[string]Value

	alias string
	paths []rawjson.Path
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokenEnd {
		p.pos++
	}
	return t
}

// accept takes the next token if it is s.
func (p *parser) accept(s string) bool {
	if p.peek().is(s) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(s string) error {
	if t := p.peek(); !p.accept(s) {
		return &Error{t.at, fmt.Sprintf("want %s, found %v", s, t)}
	}
	return nil
}

var reserved = map[string]bool{
	"SELECT": true, "VALUE": true, "TOP": true, "DISTINCT": true, "FROM": true, "AS": true, "WHERE": true,
	"AND": true, "OR": true, "NOT": true, "IN": true, "BETWEEN": true, "LIKE": true, "ORDER": true, "GROUP": true,
	"BY": true, "ASC": true, "DESC": true, "OFFSET": true, "LIMIT": true, "JOIN": true, "EXISTS": true, "HAVING": true,
	"TRUE": true, "FALSE": true, "NULL": true, "UNDEFINED": true, "UDF": true, "ESCAPE": true, "CASE": true,
}

func (p *parser) name(what string) (string, error) {
	t := p.next()
	if t.kind != tokenName || reserved[strings.ToUpper(t.text)] {
		return "", &Error{t.at, fmt.Sprintf("want %s, found %v", what, t)}
	}
	return t.text, nil
}

func (p *parser) count(what string) (int, error) {
	t := p.next()
	v := Value{Kind: Number, Num: t.num}
	if t.kind == tokenParameter {
		param, err := p.parameter(t)
		if err != nil {
			return 0, err
		}
		v = param
	} else if t.kind != tokenNumber {
		return 0, &Error{t.at, fmt.Sprintf("want a number after %s, found %v", what, t)}
	}
	if v.Kind != Number || v.Num != math.Trunc(v.Num) || v.Num < 0 || v.Num > math.MaxInt32 {
		return 0, &Error{t.at, what + " wants a whole number from 0 on"}
	}
	return int(v.Num), nil
}

func (p *parser) parameter(t token) (Value, error) {
	v, ok := p.params[t.text]
	if !ok {
		return undefined, &Error{t.at, "no parameter named " + t.text + " was given"}
	}
	return v, nil
}

func (p *parser) expression() (expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, &Error{p.peek().at, "the expression is nested too deeply"}
	}
	defer func() { p.depth-- }()
	left, err := p.conjunction()
	for err == nil && p.accept("OR") {
		var right expr
		right, err = p.conjunction()
		left = logical{false, left, right}
	}
	return left, err
}

func (p *parser) conjunction() (expr, error) {
	left, err := p.negation()
	for err == nil && p.accept("AND") {
		var right expr
		right, err = p.negation()
		left = logical{true, left, right}
	}
	return left, err
}

func (p *parser) negation() (expr, error) {
	if !p.accept("NOT") {
		return p.comparison()
	}
	if p.depth++; p.depth > maxDepth {
		return nil, &Error{p.peek().at, "the expression is nested too deeply"}
	}
	defer func() { p.depth-- }()
	operand, err := p.negation()
	return negation{operand}, err
}

func (p *parser) comparison() (expr, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	for _, op := range []string{"=", "!=", "<>", "<", "<=", ">", ">="} {
		if t.kind == tokenSymbol && p.accept(op) {
			right, err := p.operand()
			return comparison{op, left, right}, err
		}
	}
	switch {
	case p.accept("NOT"):
		inner, err := p.special(left)
		if inner == nil && err == nil {
			err = &Error{p.peek().at, "want IN or BETWEEN after NOT"}
		}
		return negation{inner}, err
	default:
		inner, err := p.special(left)
		if inner == nil && err == nil {
			return left, nil
		}
		return inner, err
	}
}

// special reads IN (…) or BETWEEN … AND …; it returns nil if neither follows.
func (p *parser) special(left expr) (expr, error) {
	switch {
	case p.accept("IN"):
		if err := p.expect("("); err != nil {
			return nil, err
		}
		list, err := p.list(")")
		if err == nil && len(list) == 0 {
			err = &Error{p.peek().at, "IN wants at least one value"}
		}
		return membership{left, list}, err
	case p.accept("BETWEEN"):
		low, err := p.operand()
		if err != nil {
			return nil, err
		}
		if err := p.expect("AND"); err != nil {
			return nil, err
		}
		high, err := p.operand()
		return logical{true, comparison{">=", left, low}, comparison{"<=", left, high}}, err
	}
	return nil, nil
}

// list reads expressions up to the closing symbol, and takes that too.
func (p *parser) list(closing string) ([]expr, error) {
	if p.accept(closing) {
		return nil, nil
	}
	var list []expr
	for {
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if p.accept(closing) {
			return list, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

func (p *parser) operand() (expr, error) {
	switch t := p.next(); t.kind {
	case tokenNumber:
		return constant{Value{Kind: Number, Num: t.num}}, nil
	case tokenString:
		return constant{Value{Kind: String, Text: []byte(t.text)}}, nil
	case tokenParameter:
		v, err := p.parameter(t)
		return constant{v}, err
	case tokenName:
		return p.named(t)
	default:
		if t.is("(") {
			e, err := p.expression()
			if err != nil {
				return nil, err
			}
			return e, p.expect(")")
		}
		if t.is("-") && p.peek().kind == tokenNumber {
			return constant{Value{Kind: Number, Num: -p.next().num}}, nil
		}
		return nil, &Error{t.at, fmt.Sprintf("want a value, found %v", t)}
	}
}

func (p *parser) named(t token) (expr, error) {
	switch strings.ToUpper(t.text) {
	case "TRUE":
		return constant{boolean(true)}, nil
	case "FALSE":
		return constant{boolean(false)}, nil
	case "NULL":
		return constant{null}, nil
	case "UNDEFINED":
		return constant{undefined}, nil
	}
	if p.accept("(") {
		return p.call(t)
	}
	path, err := p.path(t)
	return property{p.slot(path)}, err
}

func (p *parser) call(t token) (expr, error) {
	name := strings.ToUpper(t.text)
	f, ok := functions[name]
	if !ok {
		return nil, &Error{t.at, "function " + name + " is not supported here"}
	}
	args, err := p.list(")")
	if err == nil && len(args) != f.args {
		err = &Error{t.at, fmt.Sprintf("function %s takes %d arguments here, found %d", name, f.args, len(args))}
	}
	return call{f.fn, args}, err
}

// path reads what follows the alias: .name, ["name"], [number].
func (p *parser) path(t token) (rawjson.Path, error) {
	if t.text != p.alias {
		return nil, &Error{t.at, fmt.Sprintf("identifier %q could not be resolved; properties start with %q", t.text, p.alias)}
	}
	path := rawjson.Path{}
	for {
		switch {
		case p.accept("."):
			t := p.next()
			if t.kind != tokenName {
				return nil, &Error{t.at, fmt.Sprintf("want a property name after '.', found %v", t)}
			}
			path = append(path, rawjson.Step{Name: t.text})
		case p.accept("["):
			t := p.next()
			switch {
			case t.kind == tokenString:
				path = append(path, rawjson.Step{Name: t.text})
			case t.kind == tokenNumber && t.num == math.Trunc(t.num) && t.num <= math.MaxInt32:
				path = append(path, rawjson.Step{Array: true, Index: int(t.num)})
			default:
				return nil, &Error{t.at, fmt.Sprintf("want a string or a whole number after '[', found %v", t)}
			}
			if err := p.expect("]"); err != nil {
				return nil, err
			}
		default:
			return path, nil
		}
	}
}

// slot returns the number of path, the same for equal paths.
func (p *parser) slot(path rawjson.Path) int {
	for i, have := range p.paths {
		if samePath(have, path) {
			return i
		}
	}
	p.paths = append(p.paths, path)
	return len(p.paths) - 1
}

func samePath(a, b rawjson.Path) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// columnName is what an unnamed column is called: its last property, or $n.
func columnName(e expr, paths []rawjson.Path, alias string, unnamed *int) string {
	if prop, ok := e.(property); ok {
		path := paths[prop.slot]
		if len(path) == 0 {
			return alias
		}
		if last := path[len(path)-1]; !last.Array {
			return last.Name
		}
	}
	*unnamed++
	return "$" + strconv.Itoa(*unnamed)
}
