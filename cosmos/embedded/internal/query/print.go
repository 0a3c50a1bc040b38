package query

import (
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A printer writes a query in one fixed form: keywords in upper case, every
// operator in parentheses. GROUP BY and SELECT name the same expression if
// they print alike.
type printer struct {
	strings.Builder
	limit  int  // what is longer need not be complete; 0: no limit
	values bool // of parameters, not their names
}

func printed(n node) string {
	var p printer
	p.node(n)
	return p.String()
}

func printedSelect(s *selectNode) string {
	var p printer
	p.selection(s)
	return p.String()
}

func (p *printer) write(parts ...string) {
	for _, part := range parts {
		p.WriteString(part)
	}
}

func (p *printer) node(n node) {
	if p.isFull() {
		return
	}
	switch n := n.(type) {
	case literalNode:
		p.literal(n)
	case nameNode:
		p.write(n.name)
	case memberNode:
		p.base(n.base)
		p.write("[", quoted(n.name), "]")
	case indexNode:
		p.base(n.base)
		p.write("[")
		p.node(n.index)
		p.write("]")
	case unaryNode:
		p.write("(", n.op, " ")
		p.node(n.operand)
		p.write(")")
	case chainNode:
		p.chain(n)
	case binaryNode:
		p.infix(n.left, n.op, n.right)
	case ternaryNode:
		p.write("(")
		p.node(n.condition)
		p.write(" ? ")
		p.node(n.then)
		p.write(" : ")
		p.node(n.otherwise)
		p.write(")")
	default:
		p.rest(n)
	}
}

// base writes what a step leads into: a number there needs parentheses.
func (p *printer) base(n node) {
	if _, ok := n.(literalNode); !ok {
		p.node(n)
		return
	}
	p.write("(")
	p.node(n)
	p.write(")")
}

// isFull reports whether the text is longer than its limit.
func (p *printer) isFull() bool { return p.limit > 0 && p.Len() > p.limit }

// chain writes each operator in parentheses with all that is to its left.
func (p *printer) chain(n chainNode) {
	for i := 0; i < len(n.ops) && !p.isFull(); i++ {
		p.write("(")
	}
	p.node(n.operands[0])
	for i := 0; i < len(n.ops) && !p.isFull(); i++ {
		p.write(" ", n.ops[i], " ")
		p.node(n.operands[i+1])
		p.write(")")
	}
}

func (p *printer) infix(left node, op string, right node) {
	p.write("(")
	p.node(left)
	p.write(" ", op, " ")
	p.node(right)
	p.write(")")
}

func (p *printer) list(open string, nodes []node, closing string) {
	p.write(open)
	for i, n := range nodes {
		if i > 0 {
			p.write(", ")
		}
		p.node(n)
	}
	p.write(closing)
}

// rest writes what has a form of its own.
func (p *printer) rest(n node) {
	switch n := n.(type) {
	case inNode:
		p.write("(")
		p.node(n.operand)
		p.list(" IN (", n.list, "))")
	case betweenNode:
		p.write("(")
		p.node(n.operand)
		p.write(" BETWEEN ")
		p.node(n.low)
		p.write(" AND ")
		p.node(n.high)
		p.write(")")
	case likeNode:
		p.write("(")
		p.node(n.operand)
		p.write(" LIKE ")
		p.node(n.pattern)
		if n.escape != nil {
			p.write(" ESCAPE ")
			p.node(n.escape)
		}
		p.write(")")
	case callNode:
		p.list(n.name+"(", n.args, ")")
	case arrayNode:
		p.list("[", n.items, "]")
	case objectNode:
		p.write("{")
		for i, value := range n.values {
			if i > 0 {
				p.write(", ")
			}
			p.write(quoted(n.names[i]), ": ")
			p.node(value)
		}
		p.write("}")
	case subqueryNode:
		p.write(n.kind, "(")
		p.selection(n.body)
		p.write(")")
	}
}

func quoted(s string) string { return string(rawjson.AppendQuoted(nil, s)) }

func (p *printer) literal(n literalNode) {
	switch {
	case n.param != "" && !p.values:
		p.write(n.param)
	case n.value.Kind == Undefined:
		p.write("undefined")
	case n.value.Kind == Number:
		p.write(strconv.FormatFloat(n.value.Num, 'g', -1, 64))
	default:
		p.Write(n.value.Append(nil))
	}
}

func (p *printer) selection(s *selectNode) {
	p.write("SELECT ")
	if s.distinct {
		p.write("DISTINCT ")
	}
	if s.top != nil {
		p.count("TOP ", s.top)
		p.write(" ")
	}
	switch {
	case s.star:
		p.write("*")
	case s.value != nil:
		p.write("VALUE ")
		p.node(s.value)
	}
	for i, c := range s.columns {
		if i > 0 {
			p.write(", ")
		}
		p.node(c.expr)
		if c.name != "" {
			p.write(" AS ", c.name)
		}
	}
	p.printFrom(s.sources)
	if s.where != nil {
		p.write(" WHERE ")
		p.node(s.where)
	}
	if s.groupBy != nil {
		p.list(" GROUP BY ", s.groupBy, "")
	}
	for i, o := range s.orderBy {
		p.write([]string{" ORDER BY ", ", "}[min(i, 1)])
		p.node(o.path)
		p.write(map[bool]string{false: " ASC", true: " DESC"}[o.descending])
	}
	if s.offset != nil {
		p.count(" OFFSET ", s.offset)
		p.count(" LIMIT ", s.limit)
	}
}

func (p *printer) printFrom(sources []sourceNode) {
	for i, source := range sources {
		p.write([]string{" FROM ", " JOIN "}[min(i, 1)])
		if source.each {
			p.write(source.alias, " IN ")
		}
		p.node(source.from)
		if !source.each && source.alias != "" {
			p.write(" AS ", source.alias)
		}
	}
}

func (p *printer) count(clause string, c *countNode) {
	if c.param != "" && !p.values {
		p.write(clause, c.param)
		return
	}
	p.write(clause, strconv.Itoa(c.n))
}
