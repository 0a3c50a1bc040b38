package query

import "slices"

// The left-associative binary operators, lowest precedence first. Comparisons, IN, BETWEEN and LIKE are between NOT and
// |, and cannot be chained.
var (
	loose = [][]string{{"??"}, {"OR"}, {"AND"}}
	tight = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>", ">>>"}, {"+", "-", "||"}, {"*", "/", "%"}}

	comparisons = []string{"=", "!=", "<>", "<", "<=", ">", ">="}
)

// enterLevel starts a level of nesting; leaveLevel ends it. enterLevel fails if there are more than maxDepth levels.
func (p *queryParser) enterLevel() error {
	if p.depth++; p.depth > maxDepth {
		return &Error{p.peekToken().at, "the expression is nested too deeply"}
	}
	return nil
}

func (p *queryParser) leaveLevel() { p.depth-- }

// parseExpression parses an expression, which may be condition ? then : otherwise.
func (p *queryParser) parseExpression() (exprNode, error) {
	defer p.leaveLevel()
	if err := p.enterLevel(); err != nil {
		return nil, err
	}
	condition, err := p.parseOperators(loose, p.parseNegation)
	t := p.peekToken()
	if err != nil || !p.acceptToken("?") {
		return condition, err
	}
	then, err := p.parseExpression()
	if err != nil {
		return nil, err
	}
	if err := p.expectToken(":"); err != nil {
		return nil, err
	}
	otherwise, err := p.parseExpression()
	return ternaryNode{textPosition(t.at), condition, then, otherwise}, err
}

// parseOperators parses operands joined by operators of the given levels.
func (p *queryParser) parseOperators(levels [][]string, operand func() (exprNode, error)) (exprNode, error) {
	if len(levels) == 0 {
		return operand()
	}
	first, err := p.parseOperators(levels[1:], operand)
	if err != nil {
		return nil, err
	}
	chain := chainNode{operands: []exprNode{first}}
	for {
		t := p.peekToken()
		i := slices.IndexFunc(levels[0], t.isToken)
		switch {
		case i < 0 && len(chain.ops) == 0:
			return first, nil
		case i < 0:
			return chain, nil
		}
		p.pos++
		next, err := p.parseOperators(levels[1:], operand)
		if err != nil {
			return nil, err
		}
		chain.textPosition = textPosition(t.at)
		chain.ops, chain.operands = append(chain.ops, levels[0][i]), append(chain.operands, next)
	}
}

func (p *queryParser) parseNegation() (exprNode, error) {
	t := p.peekToken()
	if !p.acceptToken("NOT") {
		return p.parseComparison()
	}
	defer p.leaveLevel()
	if err := p.enterLevel(); err != nil {
		return nil, err
	}
	operand, err := p.parseNegation()
	return unaryNode{textPosition(t.at), "NOT", operand}, err
}

func (p *queryParser) parseArithmetic() (exprNode, error) {
	return p.parseOperators(tight, p.parseUnary)
}

func (p *queryParser) parseUnary() (exprNode, error) {
	t := p.peekToken()
	if i := slices.IndexFunc([]string{"-", "+", "~"}, t.isToken); i < 0 {
		n, err := p.parseOperand()
		if err != nil {
			return nil, err
		}
		return p.parseSteps(n)
	}
	p.pos++
	if p.peekToken().kind == tokenNumber && t.text == "-" {
		return literalNode{textPosition: textPosition(t.at), value: Value{Kind: Number, Num: -p.nextToken().num}}, nil
	}
	defer p.leaveLevel()
	if err := p.enterLevel(); err != nil {
		return nil, err
	}
	operand, err := p.parseUnary()
	return unaryNode{textPosition(t.at), t.text, operand}, err
}

func (p *queryParser) parseComparison() (exprNode, error) {
	left, err := p.parseArithmetic()
	if err != nil {
		return nil, err
	}
	t := p.peekToken()
	if t.kind == tokenSymbol && slices.Contains(comparisons, t.text) {
		p.pos++
		right, err := p.parseArithmetic()
		op := t.text
		if op == "<>" {
			op = "!="
		}
		return binaryNode{textPosition(t.at), op, left, right}, err
	}
	if !p.acceptToken("NOT") {
		test, err := p.parseTest(left)
		if test == nil && err == nil {
			return left, nil
		}
		return test, err
	}
	test, err := p.parseTest(left)
	if test == nil && err == nil {
		err = &Error{p.peekToken().at, "want IN, BETWEEN or LIKE after NOT"}
	}
	return unaryNode{textPosition(t.at), "NOT", test}, err
}

// parseTest parses IN, BETWEEN or LIKE. It returns nil if the next token is another one.
func (p *queryParser) parseTest(left exprNode) (exprNode, error) {
	at := textPosition(p.peekToken().at)
	switch {
	case p.acceptToken("IN"):
		if err := p.expectToken("("); err != nil {
			return nil, err
		}
		list, err := p.parseList(")")
		if err == nil && len(list) == 0 {
			err = &Error{p.tokens[p.pos-1].at, "IN wants at least one value"}
		}
		return inNode{at, left, list}, err
	case p.acceptToken("BETWEEN"):
		low, err := p.parseArithmetic()
		if err != nil {
			return nil, err
		}
		if err := p.expectToken("AND"); err != nil {
			return nil, err
		}
		high, err := p.parseArithmetic()
		return betweenNode{at, left, low, high}, err
	case p.acceptToken("LIKE"):
		pattern, err := p.parseArithmetic()
		if err != nil || !p.acceptToken("ESCAPE") {
			return likeNode{at, left, pattern, nil}, err
		}
		escape, err := p.parseArithmetic()
		return likeNode{at, left, pattern, escape}, err
	}
	return nil, nil
}
