package query

import (
	"fmt"
	"math"
	"strings"
)

// selection reads a whole query, at the top or in parentheses.
func (p *parser) selection() (*selectNode, error) {
	s := &selectNode{position: position(p.peek().at)}
	if err := p.expect("SELECT"); err != nil {
		return nil, err
	}
	s.distinct = p.accept("DISTINCT")
	for _, read := range []func(*selectNode) error{p.top, p.projection, p.parseFrom, p.where, p.groupBy, p.orderBy, p.window} {
		if err := read(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *parser) top(s *selectNode) (err error) {
	if p.accept("TOP") {
		s.top, err = p.count("TOP")
	}
	return err
}

func (p *parser) count(what string) (*countNode, error) {
	t := p.next()
	c := &countNode{position: position(t.at)}
	v := Value{Kind: Number, Num: t.num}
	if t.kind == tokenParameter {
		param, err := p.parameter(t)
		if err != nil {
			return nil, err
		}
		v, c.param = param, t.text
	} else if t.kind != tokenNumber {
		return nil, &Error{t.at, fmt.Sprintf("want a number after %s, found %v", what, t)}
	}
	if v.Kind != Number || v.Num != math.Trunc(v.Num) || v.Num < 0 || v.Num > math.MaxInt32 {
		return nil, &Error{t.at, what + " wants a whole number from 0 on"}
	}
	c.n = int(v.Num)
	return c, nil
}

func (p *parser) projection(s *selectNode) (err error) {
	if p.accept("*") {
		s.star = true
		return nil
	}
	if p.accept("VALUE") {
		s.value, err = p.expression()
		return err
	}
	for {
		c := columnNode{position: position(p.peek().at)}
		if c.expr, err = p.expression(); err != nil {
			return err
		}
		if p.accept("AS") {
			c.name, err = p.name("a name after AS")
		} else if p.free(p.peek()) {
			c.name = p.next().text
		}
		if err != nil {
			return err
		}
		s.columns = append(s.columns, c)
		if !p.accept(",") {
			return nil
		}
	}
}

// free reports whether t may be an alias.
func (p *parser) free(t token) bool {
	return t.kind == tokenName && !reserved[strings.ToUpper(t.text)]
}

// parseFrom reads FROM and every JOIN.
func (p *parser) parseFrom(s *selectNode) error {
	for keyword := "FROM"; p.accept(keyword); keyword = "JOIN" {
		source, err := p.source(keyword)
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
			return &Error{p.peek().at, "want FROM: 'SELECT *' is not valid if FROM clause is omitted"}
		}
		return &Error{s.textOffset(), "'SELECT *' is only valid with a single input set"}
	}
	return nil
}

func (p *parser) source(keyword string) (s sourceNode, err error) {
	t := p.peek()
	s.position = position(t.at)
	p.extra++
	if p.free(t) && p.tokens[p.pos+1].is("IN") {
		p.pos += 2
		s.alias, s.each = t.text, true
		s.from, err = p.collection(keyword)
		return s, err
	}
	if s.from, err = p.collection(keyword); err != nil {
		return s, err
	}
	switch {
	case p.accept("AS"):
		s.alias, err = p.name("an alias")
	case p.free(p.peek()):
		s.alias = p.next().text
	default:
		s.alias = lastName(s.from)
	}
	return s, err
}

// collection reads what FROM and JOIN range over.
func (p *parser) collection(keyword string) (node, error) {
	if t := p.peek(); t.is("(") && p.tokens[p.pos+1].is("SELECT") {
		return p.operand()
	}
	t := p.next()
	if !p.free(t) {
		return nil, &Error{t.at, fmt.Sprintf("want a name after %s, found %v", keyword, t)}
	}
	return p.path(nameNode{position(t.at), t.text})
}

// path reads the steps after a name, of which each is a constant.
func (p *parser) path(base node) (node, error) {
	n, err := p.steps(base)
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

// lastName is the alias of a path that was given none.
func lastName(n node) string {
	switch n := n.(type) {
	case nameNode:
		return n.name
	case memberNode:
		return n.name
	}
	return ""
}

func (p *parser) where(s *selectNode) (err error) {
	if p.accept("WHERE") {
		s.where, err = p.expression()
	}
	return err
}

func (p *parser) groupBy(s *selectNode) error {
	t := p.peek()
	if !p.accept("GROUP") {
		return nil
	}
	if err := p.expect("BY"); err != nil {
		return err
	}
	if s.star {
		return &Error{t.at, "GROUP BY with SELECT * is not supported"}
	}
	for {
		e, err := p.expression()
		if err != nil {
			return err
		}
		s.groupBy = append(s.groupBy, e)
		p.extra++
		if !p.accept(",") {
			return nil
		}
	}
}

func (p *parser) orderBy(s *selectNode) error {
	t := p.peek()
	if !p.accept("ORDER") {
		return nil
	}
	s.orderAt = t.at
	if s.groupBy != nil {
		return &Error{t.at, "'ORDER BY' is not supported in presence of GROUP BY"}
	}
	if err := p.expect("BY"); err != nil {
		return err
	}
	for {
		o := orderNode{position: position(p.peek().at)}
		var err error
		if o.path, err = p.expression(); err != nil {
			return err
		}
		if o.descending = p.accept("DESC"); !o.descending {
			p.accept("ASC")
		}
		s.orderBy = append(s.orderBy, o)
		if !p.accept(",") {
			return nil
		}
	}
}

func (p *parser) window(s *selectNode) (err error) {
	t := p.peek()
	if !p.accept("OFFSET") {
		return nil
	}
	if s.top != nil {
		return &Error{t.at, "OFFSET cannot be combined with TOP"}
	}
	if s.offset, err = p.count("OFFSET"); err != nil {
		return err
	}
	if err := p.expect("LIMIT"); err != nil {
		return err
	}
	s.limit, err = p.count("LIMIT")
	return err
}
