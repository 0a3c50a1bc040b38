package query

import (
	"fmt"
	"math"
	"strings"
)

// maxDepth limits the nesting of expressions, so that no query can overflow the stack.
const maxDepth = 100

// maxPath limits the steps of a path. No document is that deep.
const maxPath = 10_000

// maxJoins is Cosmos DB's limit for the number of JOINs in a query.
const maxJoins = 10

// maxCount is the maximum of TOP, OFFSET and LIMIT. Clients send this LIMIT if the user sets only an OFFSET.
const maxCount = math.MaxInt32

type queryParser struct {
	tokens []lexToken
	pos    int
	depth  int
	joins  int
	params map[string]Value

	// extra counts the slots for aliases, group keys and aggregates, as opposed to paths.
	extra int
}

func newParser(text string, params map[string]Value) (*queryParser, error) {
	tokens, err := lexQuery(text)
	if err != nil {
		return nil, err
	}
	return &queryParser{tokens: tokens, params: params}, nil
}

func (p *queryParser) peekToken() lexToken { return p.tokens[p.pos] }

func (p *queryParser) nextToken() lexToken {
	t := p.tokens[p.pos]
	if t.kind != tokenEnd {
		p.pos++
	}
	return t
}

// acceptToken consumes the next token if it is s. It reports whether it did.
func (p *queryParser) acceptToken(s string) bool {
	if p.peekToken().isToken(s) {
		p.pos++
		return true
	}
	return false
}

func (p *queryParser) expectToken(s string) error {
	if t := p.peekToken(); !p.acceptToken(s) {
		return &Error{t.at, fmt.Sprintf("want %s, found %v", s, t)}
	}
	return nil
}

// expectEnd returns an error unless the query ends here.
func (p *queryParser) expectEnd() error {
	if t := p.peekToken(); t.kind != tokenEnd {
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

func (p *queryParser) parseName(what string) (string, error) {
	t := p.nextToken()
	if !p.isAlias(t) {
		return "", &Error{t.at, fmt.Sprintf("want %s, found %v", what, t)}
	}
	return t.text, nil
}

func (p *queryParser) parseParameter(t lexToken) (Value, error) {
	v, ok := p.params[t.text]
	if !ok {
		return undefined, &Error{t.at, "no parameter named " + t.text + " was given"}
	}
	return v, nil
}

// parseList parses a list of expressions and the closing symbol.
func (p *queryParser) parseList(closing string) ([]exprNode, error) {
	if p.acceptToken(closing) {
		return nil, nil
	}
	var list []exprNode
	for {
		e, err := p.parseExpression()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if p.acceptToken(closing) {
			return list, nil
		}
		if err := p.expectToken(","); err != nil {
			return nil, err
		}
	}
}

// parseOperand parses a value, but not the steps (such as .name or [0]) that follow it.
func (p *queryParser) parseOperand() (exprNode, error) {
	t := p.nextToken()
	at := textPosition(t.at)
	switch t.kind {
	case tokenNumber:
		return literalNode{textPosition: at, value: Value{Kind: Number, Num: t.num}}, nil
	case tokenString:
		return literalNode{textPosition: at, value: Value{Kind: String, Text: []byte(t.text)}}, nil
	case tokenParameter:
		v, err := p.parseParameter(t)
		return literalNode{at, v, t.text}, err
	case tokenName:
		return p.parseNamed(t)
	default:
		return p.parseBracketed(t)
	}
}

// parseBracketed parses an expression in parentheses, brackets or braces.
func (p *queryParser) parseBracketed(t lexToken) (exprNode, error) {
	switch {
	case t.isToken("(") && p.peekToken().isToken("SELECT"):
		return p.parseSubquery(t, "")
	case t.isToken("("):
		e, err := p.parseExpression()
		if err != nil {
			return nil, err
		}
		return e, p.expectToken(")")
	case t.isToken("["):
		items, err := p.parseList("]")
		return arrayNode{textPosition(t.at), items}, err
	case t.isToken("{"):
		return p.parseObject(t)
	}
	return nil, &Error{t.at, fmt.Sprintf("want a value, found %v", t)}
}

// parseSubquery parses from SELECT to the closing parenthesis.
func (p *queryParser) parseSubquery(t lexToken, kind string) (exprNode, error) {
	body, err := p.parseSelect()
	if err != nil {
		return nil, err
	}
	return subqueryNode{textPosition(t.at), kind, body}, p.expectToken(")")
}

func (p *queryParser) parseObject(t lexToken) (exprNode, error) {
	o := objectNode{textPosition: textPosition(t.at)}
	taken := map[string]bool{}
	if p.acceptToken("}") {
		return o, nil
	}
	for {
		name := p.nextToken()
		if name.kind != tokenName && name.kind != tokenString {
			return nil, &Error{name.at, fmt.Sprintf("want a property name, found %v", name)}
		}
		if taken[name.text] {
			return nil, &Error{name.at, fmt.Sprintf("property %q is given twice", name.text)}
		}
		taken[name.text] = true
		if err := p.expectToken(":"); err != nil {
			return nil, err
		}
		value, err := p.parseExpression()
		if err != nil {
			return nil, err
		}
		o.names, o.values = append(o.names, name.text), append(o.values, value)
		if p.acceptToken("}") {
			return o, nil
		}
		if err := p.expectToken(","); err != nil {
			return nil, err
		}
	}
}

// parseNamed parses a constant such as null, a function call or the start of a path.
func (p *queryParser) parseNamed(t lexToken) (exprNode, error) {
	at := textPosition(t.at)
	word := strings.ToUpper(t.text)
	switch word {
	case "TRUE":
		return literalNode{textPosition: at, value: boolValue(true)}, nil
	case "FALSE":
		return literalNode{textPosition: at, value: boolValue(false)}, nil
	case "NULL":
		return literalNode{textPosition: at, value: null}, nil
	case "UNDEFINED":
		return literalNode{textPosition: at}, nil
	case "EXISTS":
		if err := p.expectToken("("); err != nil {
			return nil, err
		}
		return p.parseSubquery(t, word)
	case "UDF":
		return nil, &Error{t.at, "user-defined functions are not supported: " + p.restOfName(t.text)}
	}
	if p.acceptToken("(") {
		if word == "ARRAY" && p.peekToken().isToken("SELECT") {
			return p.parseSubquery(t, word)
		}
		return p.parseCall(t, word)
	}
	if next := p.peekToken(); !next.isToken(".") && !next.isToken("[") {
		switch t.text { // these names are case-sensitive, as in JSON5 and JavaScript
		case "NaN":
			return literalNode{textPosition: at, value: Value{Kind: Number, Num: math.NaN()}}, nil
		case "Infinity":
			return literalNode{textPosition: at, value: Value{Kind: Number, Num: math.Inf(1)}}, nil
		}
	}
	if reserved[word] {
		return nil, &Error{t.at, fmt.Sprintf("want a value, found %v", t)}
	}
	return nameNode{at, t.text}, nil
}

// restOfName returns name together with the steps that follow it.
func (p *queryParser) restOfName(name string) string {
	for p.acceptToken(".") {
		name += "." + p.nextToken().text
	}
	return name
}

// unsupportedFunction returns why a function is refused.
func unsupportedFunction(name string) string {
	switch {
	case strings.HasPrefix(name, "ST_"):
		return "function " + name + " is not supported here: there are no spatial functions"
	case name == "VECTORDISTANCE":
		return "function " + name + " is not supported here: there is no vector search"
	case strings.HasPrefix(name, "FULLTEXT"), name == "RRF":
		return "function " + name + " is not supported here: there is no ranking of full text"
	}
	return "function " + name + " is not supported here"
}

func (p *queryParser) parseCall(t lexToken, name string) (exprNode, error) {
	minArgs, maxArgs, ok := argumentCounts(name)
	if !ok {
		return nil, &Error{t.at, unsupportedFunction(name)}
	}
	args, err := p.parseList(")")
	if err != nil {
		return nil, err
	}
	if len(args) < minArgs || len(args) > maxArgs {
		want := fmt.Sprint(minArgs)
		switch {
		case maxArgs == unlimitedArguments:
			want += " or more"
		case maxArgs > minArgs:
			want += fmt.Sprintf(" to %d", maxArgs)
		}
		return nil, &Error{t.at, fmt.Sprintf("function %s takes %s arguments here, found %d", name, want, len(args))}
	}
	if isAggregate(name) {
		p.extra++
	}
	return callNode{textPosition(t.at), name, args}, nil
}

// parseSteps parses the steps after a value: .name, ["name"], [index].
func (p *queryParser) parseSteps(base exprNode) (exprNode, error) {
	for n := 0; ; n++ {
		if n > maxPath {
			return nil, &Error{p.peekToken().at, fmt.Sprintf("a path has at most %d steps", maxPath)}
		}
		switch at := textPosition(p.peekToken().at); {
		case p.acceptToken("."):
			t := p.nextToken()
			if t.kind != tokenName {
				return nil, &Error{t.at, fmt.Sprintf("want a property name after '.', found %v", t)}
			}
			base = memberNode{at, base, t.text}
		case p.acceptToken("["):
			index, err := p.parseExpression()
			if err != nil {
				return nil, err
			}
			if err := p.expectToken("]"); err != nil {
				return nil, err
			}
			if base, err = newStepNode(at, base, index); err != nil {
				return nil, err
			}
		default:
			return base, nil
		}
	}
}

func newStepNode(at textPosition, base, index exprNode) (exprNode, error) {
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

// wholeNumber returns the value of n if n is a constant that can be used as an index.
func wholeNumber(n exprNode) (int, bool) {
	literal, ok := n.(literalNode)
	f := literal.value.Num
	if !ok || literal.value.Kind != Number || f != math.Trunc(f) || f < 0 || f > math.MaxInt32 {
		return 0, false
	}
	return int(f), true
}
