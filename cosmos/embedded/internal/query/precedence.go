package query

import "slices"

// The operators between two operands, from those that bind loosest; all of
// them group from the left. Comparisons, IN, BETWEEN and LIKE stand between
// NOT and | and do not chain.
var (
	loose = [][]string{{"??"}, {"OR"}, {"AND"}}
	tight = [][]string{{"|"}, {"^"}, {"&"}, {"<<", ">>", ">>>"}, {"+", "-", "||"}, {"*", "/", "%"}}

	comparisons = []string{"=", "!=", "<>", "<", "<=", ">", ">="}
)

// enter counts a level of nesting; leave ends it.
func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return &Error{p.peek().at, "the expression is nested too deeply"}
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// expression reads condition ? then : otherwise, or what binds tighter.
func (p *parser) expression() (node, error) {
	defer p.leave()
	if err := p.enter(); err != nil {
		return nil, err
	}
	condition, err := p.operators(loose, p.negation)
	t := p.peek()
	if err != nil || !p.accept("?") {
		return condition, err
	}
	then, err := p.expression()
	if err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	otherwise, err := p.expression()
	return ternaryNode{position(t.at), condition, then, otherwise}, err
}

// operators reads operands joined by the operators of the levels.
func (p *parser) operators(levels [][]string, operand func() (node, error)) (node, error) {
	if len(levels) == 0 {
		return operand()
	}
	first, err := p.operators(levels[1:], operand)
	if err != nil {
		return nil, err
	}
	chain := chainNode{operands: []node{first}}
	for {
		t := p.peek()
		i := slices.IndexFunc(levels[0], t.is)
		switch {
		case i < 0 && len(chain.ops) == 0:
			return first, nil
		case i < 0:
			return chain, nil
		}
		p.pos++
		next, err := p.operators(levels[1:], operand)
		if err != nil {
			return nil, err
		}
		chain.position = position(t.at)
		chain.ops, chain.operands = append(chain.ops, levels[0][i]), append(chain.operands, next)
	}
}

func (p *parser) negation() (node, error) {
	t := p.peek()
	if !p.accept("NOT") {
		return p.comparison()
	}
	defer p.leave()
	if err := p.enter(); err != nil {
		return nil, err
	}
	operand, err := p.negation()
	return unaryNode{position(t.at), "NOT", operand}, err
}

func (p *parser) arithmetic() (node, error) { return p.operators(tight, p.unary) }

func (p *parser) unary() (node, error) {
	t := p.peek()
	if i := slices.IndexFunc([]string{"-", "+", "~"}, t.is); i < 0 {
		n, err := p.operand()
		if err != nil {
			return nil, err
		}
		return p.steps(n)
	}
	p.pos++
	if p.peek().kind == tokenNumber && t.text == "-" {
		return literalNode{position: position(t.at), value: Value{Kind: Number, Num: -p.next().num}}, nil
	}
	defer p.leave()
	if err := p.enter(); err != nil {
		return nil, err
	}
	operand, err := p.unary()
	return unaryNode{position(t.at), t.text, operand}, err
}

func (p *parser) comparison() (node, error) {
	left, err := p.arithmetic()
	if err != nil {
		return nil, err
	}
	t := p.peek()
	if t.kind == tokenSymbol && slices.Contains(comparisons, t.text) {
		p.pos++
		right, err := p.arithmetic()
		op := t.text
		if op == "<>" {
			op = "!="
		}
		return binaryNode{position(t.at), op, left, right}, err
	}
	if !p.accept("NOT") {
		test, err := p.test(left)
		if test == nil && err == nil {
			return left, nil
		}
		return test, err
	}
	test, err := p.test(left)
	if test == nil && err == nil {
		err = &Error{p.peek().at, "want IN, BETWEEN or LIKE after NOT"}
	}
	return unaryNode{position(t.at), "NOT", test}, err
}

// test reads IN, BETWEEN or LIKE; it returns nil if none of them follows.
func (p *parser) test(left node) (node, error) {
	at := position(p.peek().at)
	switch {
	case p.accept("IN"):
		if err := p.expect("("); err != nil {
			return nil, err
		}
		list, err := p.list(")")
		if err == nil && len(list) == 0 {
			err = &Error{p.tokens[p.pos-1].at, "IN wants at least one value"}
		}
		return inNode{at, left, list}, err
	case p.accept("BETWEEN"):
		low, err := p.arithmetic()
		if err != nil {
			return nil, err
		}
		if err := p.expect("AND"); err != nil {
			return nil, err
		}
		high, err := p.arithmetic()
		return betweenNode{at, left, low, high}, err
	case p.accept("LIKE"):
		pattern, err := p.arithmetic()
		if err != nil || !p.accept("ESCAPE") {
			return likeNode{at, left, pattern, nil}, err
		}
		escape, err := p.arithmetic()
		return likeNode{at, left, pattern, escape}, err
	}
	return nil, nil
}
