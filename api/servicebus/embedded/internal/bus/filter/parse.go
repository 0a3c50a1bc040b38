package filter

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
)

// An evaluator evaluates an expression for a message. It returns nil if the value is unknown or missing.
type evaluator func(Message) (any, error)

// A propertyName is the name of a property, with its scope.
type propertyName struct {
	name   string
	system bool
}

// A filterParser is a recursive descent parser with one method for each level of precedence. After an error it
// continues with dummy results; checkEnd returns the error.
type filterParser struct {
	text       string
	at         int
	token      filterToken
	parameters map[string]any
	failure    error
}

func newParser(text string, parameters map[string]any) (*filterParser, error) {
	if len(text) > MaxLength {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrSyntax, MaxLength)
	}
	p := &filterParser{text: text, parameters: parameters}
	p.nextToken()
	return p, nil
}

func (p *filterParser) nextToken() {
	var err error
	if p.token, p.at, err = readToken(p.text, p.at); err != nil && p.failure == nil {
		p.failure = err
	}
}

func (p *filterParser) recordError(format string, args ...any) {
	if p.failure == nil {
		found := p.token.text
		if p.token.kind == endToken {
			found = "the end"
		}
		p.failure = fmt.Errorf("%w: at byte %d: %s, found %s", ErrSyntax, p.token.at, fmt.Sprintf(format, args...), found)
	}
	p.token = filterToken{kind: endToken, at: len(p.text)}
	p.at = len(p.text)
}

func (p *filterParser) checkEnd() error {
	if p.failure == nil && p.token.kind != endToken {
		p.recordError("expected nothing more")
	}
	return p.failure
}

func (p *filterParser) isSymbol(symbol string) bool {
	return p.token.kind == symbolToken && p.token.text == symbol
}

func (p *filterParser) takeSymbol(symbol string) bool {
	if p.isSymbol(symbol) {
		p.nextToken()
		return true
	}
	return false
}

func (p *filterParser) expectSymbol(symbol string) {
	if !p.takeSymbol(symbol) {
		p.recordError("expected %s", symbol)
	}
}

func (p *filterParser) takeWord(word string) bool {
	if p.token.kind == wordToken && strings.EqualFold(p.token.text, word) {
		p.nextToken()
		return true
	}
	return false
}

func (p *filterParser) parseOr() evaluator {
	left := p.parseAnd()
	for p.takeWord("OR") {
		left = logicalOr(left, p.parseAnd())
	}
	return left
}

func (p *filterParser) parseAnd() evaluator {
	left := p.parseNot()
	for p.takeWord("AND") {
		left = logicalAnd(left, p.parseNot())
	}
	return left
}

func (p *filterParser) parseNot() evaluator {
	if p.takeWord("NOT") {
		return logicalNot(p.parseNot())
	}
	return p.parseComparison()
}

func (p *filterParser) parseComparison() evaluator {
	left := p.parseSum()
	for _, op := range []string{"=", "<>", "!=", "<=", ">=", "<", ">"} {
		if p.takeSymbol(op) {
			return newComparison(op, left, p.parseSum())
		}
	}
	if p.takeWord("IS") {
		not := p.takeWord("NOT")
		if !p.takeWord("NULL") {
			p.recordError("expected NULL")
		}
		return isNull(left, !not)
	}
	not := p.takeWord("NOT")
	result := left
	switch {
	case p.takeWord("IN"):
		result = matchesAny(left, p.parseList())
	case p.takeWord("LIKE"):
		pattern, escape := p.parseSum(), evaluator(nil)
		if p.takeWord("ESCAPE") {
			escape = p.parseSum()
		}
		result = likeEvaluator(left, pattern, escape)
	case not:
		p.recordError("expected IN or LIKE")
	}
	if not {
		return logicalNot(result)
	}
	return result
}

func (p *filterParser) parseList() []evaluator {
	p.expectSymbol("(")
	all := []evaluator{p.parseSum()}
	for p.takeSymbol(",") {
		all = append(all, p.parseSum())
	}
	p.expectSymbol(")")
	return all
}

func (p *filterParser) parseSum() evaluator {
	left := p.parseProduct()
	for p.isSymbol("+") || p.isSymbol("-") {
		op := p.token.text
		p.nextToken()
		left = newArithmetic(op, left, p.parseProduct())
	}
	return left
}

func (p *filterParser) parseProduct() evaluator {
	left := p.parseSign()
	for p.isSymbol("*") || p.isSymbol("/") || p.isSymbol("%") {
		op := p.token.text
		p.nextToken()
		left = newArithmetic(op, left, p.parseSign())
	}
	return left
}

func (p *filterParser) parseSign() evaluator {
	switch {
	case p.takeSymbol("-"):
		return newArithmetic("-", constantValue(int64(0)), p.parseSign())
	case p.takeSymbol("+"):
		return newArithmetic("+", constantValue(int64(0)), p.parseSign())
	}
	return p.parsePrimary()
}

func (p *filterParser) parsePrimary() evaluator {
	t := p.token
	switch t.kind {
	case stringToken:
		p.nextToken()
		return constantValue(t.text)
	case numberToken:
		p.nextToken()
		return p.parseNumber(t)
	case paramToken:
		v, ok := p.parameters[t.text]
		if !ok {
			p.recordError("expected a parameter that was given")
			return constantValue(nil)
		}
		p.nextToken()
		return constantValue(Normalize(v))
	case symbolToken:
		p.expectSymbol("(")
		inner := p.parseOr()
		p.expectSymbol(")")
		return inner
	case wordToken, quotedToken:
		return p.parseNamed(t)
	default:
		p.recordError("expected a value")
		return constantValue(nil)
	}
}

// parseNamed parses an expression that begins with a name: a constant, a function or a property.
func (p *filterParser) parseNamed(t filterToken) evaluator {
	if t.kind == wordToken {
		switch strings.ToUpper(t.text) {
		case "TRUE", "FALSE":
			p.nextToken()
			return constantValue(strings.EqualFold(t.text, "TRUE"))
		case "NULL":
			p.nextToken()
			return constantValue(nil)
		case "EXISTS":
			p.nextToken()
			p.expectSymbol("(")
			of := p.parseProperty()
			p.expectSymbol(")")
			return propertyExists(of)
		case "NEWID":
			p.nextToken()
			p.expectSymbol("(")
			p.expectSymbol(")")
			return func(Message) (any, error) { return rand.Text(), nil }
		case "AND", "OR", "NOT", "IN", "LIKE", "IS", "ESCAPE", "SET", "REMOVE":
			p.recordError("expected a value")
			return constantValue(nil)
		}
	}
	of := p.parseProperty()
	if p.isSymbol("(") && !of.system && (strings.EqualFold(of.name, "property") || strings.EqualFold(of.name, "p")) {
		p.nextToken()
		of = propertyName{name: p.token.text}
		if p.token.kind != stringToken {
			p.recordError("expected the name of a property in quotes")
		}
		p.nextToken()
		p.expectSymbol(")")
	}
	return propertyValue(of)
}

// parseProperty parses a property name with an optional scope.
func (p *filterParser) parseProperty() propertyName {
	name := p.parseName()
	if !p.takeSymbol(".") {
		return propertyName{name: name}
	}
	scope, name := name, p.parseName()
	switch {
	case strings.EqualFold(scope, "user"):
		return propertyName{name: name}
	case !strings.EqualFold(scope, "sys"):
		p.recordError("expected sys. or user. before %s", name)
		return propertyName{}
	}
	known, ok := Canonical(name)
	if !ok {
		p.recordError("there is no property sys.%s", name)
	}
	return propertyName{known, true}
}

func (p *filterParser) parseName() string {
	t := p.token
	if t.kind != wordToken && t.kind != quotedToken || t.text == "" {
		p.recordError("expected the name of a property")
		return ""
	}
	p.nextToken()
	return t.text
}

func (p *filterParser) parseNumber(t filterToken) evaluator {
	digits, base := t.text, 10
	if len(digits) > 2 && strings.EqualFold(digits[:2], "0x") {
		digits, base = digits[2:], 16
	}
	if n, err := strconv.ParseInt(digits, base, 64); err == nil {
		return constantValue(n)
	}
	f, err := strconv.ParseFloat(t.text, 64)
	if err != nil {
		p.recordError("the number %s is out of range", t.text)
	}
	return constantValue(f)
}
