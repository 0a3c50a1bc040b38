package query

import (
	"fmt"
	"math"
	"strings"
)

// maxDepth bounds nested expressions, so that no query can exhaust the stack.
const maxDepth = 100

// maxPath bounds the steps into a value. Documents are far less deep.
const maxPath = 10_000

// maxJoins is how many JOINs Cosmos DB takes in a query.
const maxJoins = 10

type parser struct {
	tokens []token
	pos    int
	depth  int
	joins  int
	params map[string]Value

	// extra counts what needs a slot besides paths: the aliases, the keys of
	// groups and the aggregates.
	extra int
}

func newParser(text string, params map[string]Value) (*parser, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	return &parser{tokens: tokens, params: params}, nil
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

// end refuses whatever follows the query.
func (p *parser) end() error {
	if t := p.peek(); t.kind != tokenEnd {
		return &Error{t.at, fmt.Sprintf("%v is not supported here", t)}
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
	if !p.free(t) {
		return "", &Error{t.at, fmt.Sprintf("want %s, found %v", what, t)}
	}
	return t.text, nil
}

func (p *parser) parameter(t token) (Value, error) {
	v, ok := p.params[t.text]
	if !ok {
		return undefined, &Error{t.at, "no parameter named " + t.text + " was given"}
	}
	return v, nil
}

// list reads expressions up to the closing symbol, and takes that too.
func (p *parser) list(closing string) ([]node, error) {
	if p.accept(closing) {
		return nil, nil
	}
	var list []node
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

// operand reads a value without the steps into it.
func (p *parser) operand() (node, error) {
	t := p.next()
	at := position(t.at)
	switch t.kind {
	case tokenNumber:
		return literalNode{position: at, value: Value{Kind: Number, Num: t.num}}, nil
	case tokenString:
		return literalNode{position: at, value: Value{Kind: String, Text: []byte(t.text)}}, nil
	case tokenParameter:
		v, err := p.parameter(t)
		return literalNode{at, v, t.text}, err
	case tokenName:
		return p.named(t)
	default:
		return p.bracketed(t)
	}
}

// bracketed reads what is in parentheses, brackets or braces.
func (p *parser) bracketed(t token) (node, error) {
	switch {
	case t.is("(") && p.peek().is("SELECT"):
		return p.subquery(t, "")
	case t.is("("):
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	case t.is("["):
		items, err := p.list("]")
		return arrayNode{position(t.at), items}, err
	case t.is("{"):
		return p.object(t)
	}
	return nil, &Error{t.at, fmt.Sprintf("want a value, found %v", t)}
}

// subquery reads from SELECT to the closing parenthesis.
func (p *parser) subquery(t token, kind string) (node, error) {
	body, err := p.selection()
	if err != nil {
		return nil, err
	}
	if clause, at := beyondSubquery(body); clause != "" {
		return nil, &Error{at, clause + " is not supported in a subquery"}
	}
	return subqueryNode{position(t.at), kind, body}, p.expect(")")
}

func beyondSubquery(s *selectNode) (clause string, at int) {
	switch {
	case s.top != nil:
		return "TOP", s.top.textOffset()
	case s.orderBy != nil:
		return "ORDER BY", s.orderAt
	case s.offset != nil:
		return "OFFSET LIMIT", s.offset.textOffset()
	}
	return "", 0
}

func (p *parser) object(t token) (node, error) {
	o := objectNode{position: position(t.at)}
	taken := map[string]bool{}
	if p.accept("}") {
		return o, nil
	}
	for {
		name := p.next()
		if name.kind != tokenName && name.kind != tokenString {
			return nil, &Error{name.at, fmt.Sprintf("want a property name, found %v", name)}
		}
		if taken[name.text] {
			return nil, &Error{name.at, fmt.Sprintf("property %q is given twice", name.text)}
		}
		taken[name.text] = true
		if err := p.expect(":"); err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		o.names, o.values = append(o.names, name.text), append(o.values, value)
		if p.accept("}") {
			return o, nil
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
	}
}

// named reads a word constant, a function or the start of a path.
func (p *parser) named(t token) (node, error) {
	at := position(t.at)
	word := strings.ToUpper(t.text)
	switch word {
	case "TRUE":
		return literalNode{position: at, value: boolean(true)}, nil
	case "FALSE":
		return literalNode{position: at, value: boolean(false)}, nil
	case "NULL":
		return literalNode{position: at, value: null}, nil
	case "UNDEFINED":
		return literalNode{position: at}, nil
	case "EXISTS":
		if err := p.expect("("); err != nil {
			return nil, err
		}
		return p.subquery(t, word)
	case "UDF":
		return nil, &Error{t.at, "user-defined functions are not supported"}
	}
	if p.accept("(") {
		if word == "ARRAY" && p.peek().is("SELECT") {
			return p.subquery(t, word)
		}
		return p.call(t, word)
	}
	if reserved[word] {
		return nil, &Error{t.at, fmt.Sprintf("want a value, found %v", t)}
	}
	return nameNode{at, t.text}, nil
}

func (p *parser) call(t token, name string) (node, error) {
	least, most, ok := arguments(name)
	if !ok {
		return nil, &Error{t.at, "function " + name + " is not supported here"}
	}
	args, err := p.list(")")
	if err != nil {
		return nil, err
	}
	if len(args) < least || len(args) > most {
		want := fmt.Sprint(least)
		switch {
		case most == anyNumber:
			want += " or more"
		case most > least:
			want += fmt.Sprintf(" to %d", most)
		}
		return nil, &Error{t.at, fmt.Sprintf("function %s takes %s arguments here, found %d", name, want, len(args))}
	}
	if isAggregate(name) {
		p.extra++
	}
	return callNode{position(t.at), name, args}, nil
}

// steps reads what follows a value: .name, ["name"], [index].
func (p *parser) steps(base node) (node, error) {
	for n := 0; ; n++ {
		if n > maxPath {
			return nil, &Error{p.peek().at, fmt.Sprintf("a path has at most %d steps", maxPath)}
		}
		switch at := position(p.peek().at); {
		case p.accept("."):
			t := p.next()
			if t.kind != tokenName {
				return nil, &Error{t.at, fmt.Sprintf("want a property name after '.', found %v", t)}
			}
			base = memberNode{at, base, t.text}
		case p.accept("["):
			index, err := p.expression()
			if err != nil {
				return nil, err
			}
			if err := p.expect("]"); err != nil {
				return nil, err
			}
			if base, err = step(at, base, index); err != nil {
				return nil, err
			}
		default:
			return base, nil
		}
	}
}

func step(at position, base, index node) (node, error) {
	literal, ok := index.(literalNode)
	if !ok {
		return indexNode{at, base, index}, nil
	}
	if literal.value.Kind == String {
		return memberNode{at, base, string(literal.value.Text)}, nil
	}
	if _, ok := wholeNumber(index); !ok {
		return nil, &Error{index.textOffset(), "want a string or a whole number from 0 on after '['"}
	}
	return indexNode{at, base, index}, nil
}

// wholeNumber returns the constant index that n is.
func wholeNumber(n node) (int, bool) {
	literal, ok := n.(literalNode)
	f := literal.value.Num
	if !ok || literal.value.Kind != Number || f != math.Trunc(f) || f < 0 || f > math.MaxInt32 {
		return 0, false
	}
	return int(f), true
}
