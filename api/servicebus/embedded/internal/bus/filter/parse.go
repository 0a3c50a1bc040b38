package filter

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
)

// A node is a part of an expression: it gives the value for a message. An
// unknown truth is nil, like a value that is not there.
type node func(Message) (any, error)

// A property is a name with its scope.
type property struct {
	name   string
	system bool
}

// A parser reads by recursive descent, one method for each level of
// precedence. After a failure it goes on with harmless results until end
// reports it.
type parser struct {
	text       string
	at         int
	token      token
	parameters map[string]any
	failure    error
}

func newParser(text string, parameters map[string]any) (*parser, error) {
	if len(text) > MaxLength {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrSyntax, MaxLength)
	}
	p := &parser{text: text, parameters: parameters}
	p.advance()
	return p, nil
}

func (p *parser) advance() {
	var err error
	if p.token, p.at, err = lex(p.text, p.at); err != nil && p.failure == nil {
		p.failure = err
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.failure == nil {
		found := p.token.text
		if p.token.kind == endToken {
			found = "the end"
		}
		p.failure = fmt.Errorf("%w: at byte %d: %s, found %s", ErrSyntax, p.token.at, fmt.Sprintf(format, args...), found)
	}
	p.token = token{kind: endToken, at: len(p.text)}
	p.at = len(p.text)
}

func (p *parser) end() error {
	if p.failure == nil && p.token.kind != endToken {
		p.fail("expected nothing more")
	}
	return p.failure
}

func (p *parser) is(symbol string) bool { return p.token.kind == symbolToken && p.token.text == symbol }

func (p *parser) take(symbol string) bool {
	if p.is(symbol) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) expect(symbol string) {
	if !p.take(symbol) {
		p.fail("expected %s", symbol)
	}
}

func (p *parser) takeWord(word string) bool {
	if p.token.kind == wordToken && strings.EqualFold(p.token.text, word) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) or() node {
	left := p.and()
	for p.takeWord("OR") {
		left = either(left, p.and())
	}
	return left
}

func (p *parser) and() node {
	left := p.not()
	for p.takeWord("AND") {
		left = both(left, p.not())
	}
	return left
}

func (p *parser) not() node {
	if p.takeWord("NOT") {
		return negate(p.not())
	}
	return p.comparison()
}

func (p *parser) comparison() node {
	left := p.sum()
	for _, op := range []string{"=", "<>", "!=", "<=", ">=", "<", ">"} {
		if p.take(op) {
			return compare(op, left, p.sum())
		}
	}
	if p.takeWord("IS") {
		not := p.takeWord("NOT")
		if !p.takeWord("NULL") {
			p.fail("expected NULL")
		}
		return isNull(left, !not)
	}
	not := p.takeWord("NOT")
	result := left
	switch {
	case p.takeWord("IN"):
		result = matchesAny(left, p.list())
	case p.takeWord("LIKE"):
		pattern, escape := p.sum(), node(nil)
		if p.takeWord("ESCAPE") {
			escape = p.sum()
		}
		result = like(left, pattern, escape)
	case not:
		p.fail("expected IN or LIKE")
	}
	if not {
		return negate(result)
	}
	return result
}

func (p *parser) list() []node {
	p.expect("(")
	all := []node{p.sum()}
	for p.take(",") {
		all = append(all, p.sum())
	}
	p.expect(")")
	return all
}

func (p *parser) sum() node {
	left := p.product()
	for p.is("+") || p.is("-") {
		op := p.token.text
		p.advance()
		left = arithmetic(op, left, p.product())
	}
	return left
}

func (p *parser) product() node {
	left := p.sign()
	for p.is("*") || p.is("/") || p.is("%") {
		op := p.token.text
		p.advance()
		left = arithmetic(op, left, p.sign())
	}
	return left
}

func (p *parser) sign() node {
	switch {
	case p.take("-"):
		return arithmetic("-", constant(int64(0)), p.sign())
	case p.take("+"):
		return arithmetic("+", constant(int64(0)), p.sign())
	}
	return p.primary()
}

func (p *parser) primary() node {
	t := p.token
	switch t.kind {
	case stringToken:
		p.advance()
		return constant(t.text)
	case numberToken:
		p.advance()
		return p.number(t)
	case paramToken:
		v, ok := p.parameters[t.text]
		if !ok {
			p.fail("expected a parameter that was given")
			return constant(nil)
		}
		p.advance()
		return constant(Normalize(v))
	case symbolToken:
		p.expect("(")
		inner := p.or()
		p.expect(")")
		return inner
	case wordToken, quotedToken:
		return p.named(t)
	default:
		p.fail("expected a value")
		return constant(nil)
	}
}

// named reads what begins with a name: a constant, a function or a property.
func (p *parser) named(t token) node {
	if t.kind == wordToken {
		switch strings.ToUpper(t.text) {
		case "TRUE", "FALSE":
			p.advance()
			return constant(strings.EqualFold(t.text, "TRUE"))
		case "NULL":
			p.advance()
			return constant(nil)
		case "EXISTS":
			p.advance()
			p.expect("(")
			of := p.property()
			p.expect(")")
			return exists(of)
		case "NEWID":
			p.advance()
			p.expect("(")
			p.expect(")")
			return func(Message) (any, error) { return rand.Text(), nil }
		case "AND", "OR", "NOT", "IN", "LIKE", "IS", "ESCAPE", "SET", "REMOVE":
			p.fail("expected a value")
			return constant(nil)
		}
	}
	of := p.property()
	if p.is("(") && !of.system && (strings.EqualFold(of.name, "property") || strings.EqualFold(of.name, "p")) {
		p.advance()
		of = property{name: p.token.text}
		if p.token.kind != stringToken {
			p.fail("expected the name of a property in quotes")
		}
		p.advance()
		p.expect(")")
	}
	return value(of)
}

// property reads a name with its scope, if it has one.
func (p *parser) property() property {
	name := p.name()
	if !p.take(".") {
		return property{name: name}
	}
	scope, name := name, p.name()
	switch {
	case strings.EqualFold(scope, "user"):
		return property{name: name}
	case !strings.EqualFold(scope, "sys"):
		p.fail("expected sys. or user. before %s", name)
		return property{}
	}
	known, ok := Canonical(name)
	if !ok {
		p.fail("there is no property sys.%s", name)
	}
	return property{known, true}
}

func (p *parser) name() string {
	t := p.token
	if t.kind != wordToken && t.kind != quotedToken || t.text == "" {
		p.fail("expected the name of a property")
		return ""
	}
	p.advance()
	return t.text
}

func (p *parser) number(t token) node {
	digits, base := t.text, 10
	if len(digits) > 2 && strings.EqualFold(digits[:2], "0x") {
		digits, base = digits[2:], 16
	}
	if n, err := strconv.ParseInt(digits, base, 64); err == nil {
		return constant(n)
	}
	f, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		p.fail("the number %s is out of range", t.text)
	}
	return constant(f)
}
