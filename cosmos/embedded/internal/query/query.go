package query

import (
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// NoLimit stands for a TOP or LIMIT that the query does not have.
const NoLimit = -1

// A Query is a parsed query with its parameters. It is immutable.
type Query struct {
	star      bool
	value     expr
	columns   []column
	aggregate string // its upper-case name, "" if there is none
	where     expr   // nil keeps everything
	orders    []Order
	offset    int
	limit     int // of TOP or LIMIT
	paths     []rawjson.Path
	extractor *rawjson.Extractor
}

type column struct {
	name string
	expr expr
}

// An Order is one path of ORDER BY.
type Order struct {
	Path       rawjson.Path
	Descending bool
	slot       int
}

// Parse reads text. params gives each @name its value, as rawjson.Compact
// wrote it.
func Parse(text string, params map[string]Value) (*Query, error) {
	p, err := newParser(text, params)
	if err != nil {
		return nil, err
	}
	q := &Query{limit: NoLimit}
	if err := p.expect("SELECT"); err != nil {
		return nil, err
	}
	if err := p.findAlias(); err != nil {
		return nil, err
	}
	for _, read := range []func(*Query) error{p.selection, p.from, p.condition, p.ordering, p.window} {
		if err := read(q); err != nil {
			return nil, err
		}
	}
	return p.finish(q)
}

// ParseCondition reads the condition of a patch: FROM alias WHERE condition.
func ParseCondition(text string) (*Query, error) {
	p, err := newParser(text, nil)
	if err != nil {
		return nil, err
	}
	q := &Query{star: true, limit: NoLimit}
	if err := p.from(q); err != nil {
		return nil, err
	}
	if t := p.peek(); !t.is("WHERE") {
		return nil, &Error{t.at, "a patch condition needs WHERE"}
	}
	if err := p.condition(q); err != nil {
		return nil, err
	}
	return p.finish(q)
}

func newParser(text string, params map[string]Value) (*parser, error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	return &parser{tokens: tokens, params: params}, nil
}

func (p *parser) finish(q *Query) (*Query, error) {
	if t := p.peek(); t.kind != tokenEnd {
		return nil, &Error{t.at, fmt.Sprintf("%v is not supported here", t)}
	}
	q.paths = p.paths
	q.extractor = rawjson.NewExtractor(p.paths)
	return q, nil
}

// findAlias looks ahead for FROM, because the selection before it already
// uses the alias that FROM gives.
func (p *parser) findAlias() error {
	at := p.pos
	defer func() { p.pos = at }()
	for p.peek().kind != tokenEnd {
		if t := p.next(); t.is("FROM") && t.kind == tokenName && !p.tokens[p.pos-2].is(".") {
			p.pos--
			return p.from(nil)
		}
	}
	return &Error{p.peek().at, "want FROM"}
}

func (p *parser) from(*Query) error {
	if err := p.expect("FROM"); err != nil {
		return err
	}
	alias, err := p.name("a name after FROM")
	if err != nil {
		return err
	}
	if t := p.peek(); p.accept("AS") || t.kind == tokenName && !reserved[strings.ToUpper(t.text)] {
		if alias, err = p.name("an alias"); err != nil {
			return err
		}
	}
	p.alias = alias
	return nil
}

func (p *parser) selection(q *Query) error {
	if p.accept("TOP") {
		n, err := p.count("TOP")
		if err != nil {
			return err
		}
		q.limit = n
	}
	if p.accept("*") {
		q.star = true
		return nil
	}
	if p.accept("VALUE") {
		return p.selectValue(q)
	}
	unnamed := 0
	for {
		if t := p.peek(); isAggregate(t.text) && p.tokens[p.pos+1].is("(") {
			return &Error{t.at, "an aggregate is supported only as SELECT VALUE " + strings.ToUpper(t.text) + "(…)"}
		}
		at := p.peek().at
		e, err := p.expression()
		if err != nil {
			return err
		}
		c := column{expr: e}
		if p.accept("AS") {
			if c.name, err = p.name("a name after AS"); err != nil {
				return err
			}
		} else {
			c.name = columnName(e, p.paths, p.alias, &unnamed)
		}
		for _, have := range q.columns {
			if have.name == c.name {
				return &Error{at, fmt.Sprintf("property name %q is selected twice; name one of them with AS", c.name)}
			}
		}
		q.columns = append(q.columns, c)
		if !p.accept(",") {
			return nil
		}
	}
}

func isAggregate(name string) bool {
	switch strings.ToUpper(name) {
	case "COUNT", "SUM", "MIN", "MAX", "AVG":
		return true
	}
	return false
}

func (p *parser) selectValue(q *Query) error {
	t := p.peek()
	if t.kind == tokenName && isAggregate(t.text) && p.tokens[p.pos+1].is("(") {
		p.pos += 2
		args, err := p.list(")")
		if err == nil && len(args) != 1 {
			err = &Error{t.at, "an aggregate takes one argument"}
		}
		if err != nil {
			return err
		}
		q.aggregate, q.value = strings.ToUpper(t.text), args[0]
		return nil
	}
	e, err := p.expression()
	q.value = e
	return err
}

func (p *parser) condition(q *Query) error {
	if !p.accept("WHERE") {
		return nil
	}
	e, err := p.expression()
	q.where = e
	return err
}

func (p *parser) ordering(q *Query) error {
	t := p.peek()
	if !p.accept("ORDER") {
		return nil
	}
	if q.aggregate != "" {
		return &Error{t.at, "ORDER BY with an aggregate is not supported"}
	}
	if err := p.expect("BY"); err != nil {
		return err
	}
	for {
		t := p.next()
		if t.kind != tokenName {
			return &Error{t.at, fmt.Sprintf("ORDER BY wants a property path, found %v", t)}
		}
		path, err := p.path(t)
		if err != nil {
			return err
		}
		if len(path) == 0 {
			return &Error{t.at, "ORDER BY wants a property, not the document"}
		}
		o := Order{Path: path, slot: p.slot(path)}
		if p.accept("DESC") {
			o.Descending = true
		} else {
			p.accept("ASC")
		}
		q.orders = append(q.orders, o)
		if !p.accept(",") {
			return nil
		}
	}
}

func (p *parser) window(q *Query) (err error) {
	t := p.peek()
	if !p.accept("OFFSET") {
		return nil
	}
	if q.limit != NoLimit || q.aggregate != "" {
		return &Error{t.at, "OFFSET cannot be combined with TOP or an aggregate"}
	}
	if q.offset, err = p.count("OFFSET"); err != nil {
		return err
	}
	if err := p.expect("LIMIT"); err != nil {
		return err
	}
	q.limit, err = p.count("LIMIT")
	return err
}
