package query

import (
	"fmt"
	"math"
	"strings"
)

// parseSelect parses a whole query or a subquery in parentheses.
func (p *queryParser) parseSelect() (*selectNode, error) {
	s := &selectNode{textPosition: textPosition(p.peekToken().at)}
	if err := p.expectToken("SELECT"); err != nil {
		return nil, err
	}
	s.distinct = p.acceptToken("DISTINCT")
	for _, read := range []func(*selectNode) error{p.parseTop, p.parseProjection, p.parseFrom, p.parseWhere, p.parseGroupBy, p.parseOrderBy, p.parseWindow} {
		if err := read(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *queryParser) parseTop(s *selectNode) (err error) {
	if p.acceptToken("TOP") {
		s.top, err = p.parseCount("TOP")
	}
	return err
}

func (p *queryParser) parseCount(what string) (*countNode, error) {
	t := p.nextToken()
	c := &countNode{textPosition: textPosition(t.at)}
	v := Value{Kind: Number, Num: t.num}
	if t.kind == tokenParameter {
		param, err := p.parseParameter(t)
		if err != nil {
			return nil, err
		}
		v, c.param = param, t.text
	} else if t.kind != tokenNumber {
		return nil, &Error{t.at, fmt.Sprintf("want a number after %s, found %v", what, t)}
	}
	if v.Kind != Number || v.Num != math.Trunc(v.Num) || v.Num < 0 || v.Num > maxCount {
		return nil, &Error{t.at, what + " wants a whole number from 0 on"}
	}
	c.n = int(v.Num)
	return c, nil
}

func (p *queryParser) parseProjection(s *selectNode) (err error) {
	if p.acceptToken("*") {
		s.star = true
		return nil
	}
	if p.acceptToken("VALUE") {
		s.value, err = p.parseExpression()
		return err
	}
	for {
		c := columnNode{textPosition: textPosition(p.peekToken().at)}
		if c.expr, err = p.parseExpression(); err != nil {
			return err
		}
		if p.acceptToken("AS") {
			if t := p.peekToken(); t.kind == tokenString && t.text != "" {
				c.name = p.nextToken().text
			} else {
				c.name, err = p.parseName("a name after AS")
			}
		} else if p.isAlias(p.peekToken()) {
			c.name = p.nextToken().text
		}
		if err != nil {
			return err
		}
		s.columns = append(s.columns, c)
		if !p.acceptToken(",") {
			return nil
		}
	}
}

// isAlias reports whether t is allowed as an alias.
func (p *queryParser) isAlias(t lexToken) bool {
	return t.kind == tokenName && !reserved[strings.ToUpper(t.text)]
}

// parseFrom parses FROM and JOIN.
func (p *queryParser) parseFrom(s *selectNode) error {
	for keyword := "FROM"; p.acceptToken(keyword); keyword = "JOIN" {
		source, err := p.parseSource(keyword)
		if err != nil {
			return err
		}
		for _, have := range s.sources {
			if have.alias == source.alias && source.alias != "" {
				return &Error{source.textOffset(), fmt.Sprintf("alias %q is declared twice", source.alias)}
			}
		}
		s.sources = append(s.sources, source)
		if keyword == "JOIN" {
			p.joins++
		}
		if p.joins > maxJoins {
			return &Error{source.textOffset(), fmt.Sprintf("a query has at most %d JOINs", maxJoins)}
		}
	}
	if s.star && len(s.sources) != 1 {
		if len(s.sources) == 0 {
			return &Error{p.peekToken().at, "want FROM: 'SELECT *' is not valid if FROM clause is omitted"}
		}
		return &Error{s.textOffset(), "'SELECT *' is only valid with a single input set"}
	}
	return nil
}

func (p *queryParser) parseSource(keyword string) (s sourceNode, err error) {
	t := p.peekToken()
	s.textPosition = textPosition(t.at)
	p.extra++
	if p.isAlias(t) && p.tokens[p.pos+1].isToken("IN") {
		p.pos += 2
		s.alias, s.each = t.text, true
		s.from, err = p.parseCollection(keyword)
		return s, err
	}
	if s.from, err = p.parseCollection(keyword); err != nil {
		return s, err
	}
	switch {
	case p.acceptToken("AS"):
		s.alias, err = p.parseName("an alias")
	case p.isAlias(p.peekToken()):
		s.alias = p.nextToken().text
	default:
		s.alias = lastName(s.from)
	}
	return s, err
}

// parseCollection parses the operand of FROM or JOIN.
func (p *queryParser) parseCollection(keyword string) (exprNode, error) {
	if t := p.peekToken(); t.isToken("(") && p.tokens[p.pos+1].isToken("SELECT") {
		return p.parseOperand()
	}
	t := p.nextToken()
	if !p.isAlias(t) {
		return nil, &Error{t.at, fmt.Sprintf("want a name after %s, found %v", keyword, t)}
	}
	if p.peekToken().isToken("(") {
		return nil, &Error{t.at, fmt.Sprintf("want a path or a subquery after %s, found a function; write (SELECT VALUE %s(…))", keyword, t.text)}
	}
	return p.parsePath(nameNode{textPosition(t.at), t.text})
}

// parsePath parses the steps after the name base, all of which must be constant.
func (p *queryParser) parsePath(base exprNode) (exprNode, error) {
	n, err := p.parseSteps(base)
	if err != nil {
		return nil, err
	}
	for at := n; ; {
		switch step := at.(type) {
		case memberNode:
			at = step.base
			continue
		case indexNode:
			if _, ok := wholeNumber(step.index); !ok {
				return nil, &Error{step.index.textOffset(), "want a string or a whole number after '['"}
			}
			at = step.base
			continue
		}
		return n, nil
	}
}

// lastName returns the default alias of a path.
func lastName(n exprNode) string {
	switch n := n.(type) {
	case nameNode:
		return n.name
	case memberNode:
		return n.name
	}
	return ""
}

func (p *queryParser) parseWhere(s *selectNode) (err error) {
	if p.acceptToken("WHERE") {
		s.where, err = p.parseExpression()
	}
	return err
}

func (p *queryParser) parseGroupBy(s *selectNode) error {
	t := p.peekToken()
	if !p.acceptToken("GROUP") {
		return nil
	}
	if err := p.expectToken("BY"); err != nil {
		return err
	}
	if s.star {
		return &Error{t.at, "GROUP BY with SELECT * is not supported"}
	}
	for {
		e, err := p.parseExpression()
		if err != nil {
			return err
		}
		s.groupBy = append(s.groupBy, e)
		p.extra++
		if !p.acceptToken(",") {
			return nil
		}
	}
}

func (p *queryParser) parseOrderBy(s *selectNode) error {
	t := p.peekToken()
	if !p.acceptToken("ORDER") {
		return nil
	}
	s.orderAt = t.at
	if s.groupBy != nil {
		return &Error{t.at, "'ORDER BY' is not supported in presence of GROUP BY"}
	}
	if err := p.expectToken("BY"); err != nil {
		return err
	}
	if rank := p.peekToken(); rank.isToken("RANK") && p.tokens[p.pos+1].kind == tokenName && p.tokens[p.pos+2].isToken("(") {
		return &Error{rank.at, "ORDER BY RANK is not supported here: there is no ranking of full text"}
	}
	for {
		o := orderNode{textPosition: textPosition(p.peekToken().at)}
		var err error
		if o.path, err = p.parseExpression(); err != nil {
			return err
		}
		if o.descending = p.acceptToken("DESC"); !o.descending {
			p.acceptToken("ASC")
		}
		s.orderBy = append(s.orderBy, o)
		if !p.acceptToken(",") {
			return nil
		}
	}
}

func (p *queryParser) parseWindow(s *selectNode) (err error) {
	t := p.peekToken()
	if !p.acceptToken("OFFSET") {
		return nil
	}
	if s.top != nil {
		return &Error{t.at, "OFFSET cannot be combined with TOP"}
	}
	if s.offset, err = p.parseCount("OFFSET"); err != nil {
		return err
	}
	if err := p.expectToken("LIMIT"); err != nil {
		return err
	}
	s.limit, err = p.parseCount("LIMIT")
	return err
}
