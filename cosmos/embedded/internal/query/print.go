package query

import (
	"math"
	"strconv"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A printer writes a query in canonical form: with keywords in upper case and every operation in parentheses. If an
// expression in SELECT has the same canonical form as one in GROUP BY, it is that key.
type printer struct {
	strings.Builder
	limit  int  // length after which the text may be truncated; 0 means never
	values bool // true to write the values of parameters in place of their names
}

func printNode(n exprNode) string {
	var p printer
	p.writeNode(n)
	return p.String()
}

func printSelect(s *selectNode) string {
	var p printer
	p.writeSelect(s)
	return p.String()
}

func (p *printer) writeParts(parts ...string) {
	for _, part := range parts {
		p.WriteString(part)
	}
}

func (p *printer) writeNode(n exprNode) {
	if p.isFull() {
		return
	}
	switch n := n.(type) {
	case literalNode:
		p.writeLiteral(n)
	case nameNode:
		p.writeParts(n.name)
	case memberNode:
		p.writeBase(n.base)
		p.writeParts("[", quoteJSON(n.name), "]")
	case indexNode:
		p.writeBase(n.base)
		p.writeParts("[")
		p.writeNode(n.index)
		p.writeParts("]")
	case unaryNode:
		p.writeParts("(", n.op, " ")
		p.writeNode(n.operand)
		p.writeParts(")")
	case chainNode:
		p.writeChain(n)
	case binaryNode:
		p.writeInfix(n.left, n.op, n.right)
	case ternaryNode:
		p.writeParts("(")
		p.writeNode(n.condition)
		p.writeParts(" ? ")
		p.writeNode(n.then)
		p.writeParts(" : ")
		p.writeNode(n.otherwise)
		p.writeParts(")")
	default:
		p.writeSpecial(n)
	}
}

// writeBase writes the value before a step, with parentheses if it is a number.
func (p *printer) writeBase(n exprNode) {
	if _, ok := n.(literalNode); !ok {
		p.writeNode(n)
		return
	}
	p.writeParts("(")
	p.writeNode(n)
	p.writeParts(")")
}

// isFull reports whether the text is longer than its limit.
func (p *printer) isFull() bool { return p.limit > 0 && p.Len() > p.limit }

// writeChain writes a chain with parentheses around each operation.
func (p *printer) writeChain(n chainNode) {
	for i := 0; i < len(n.ops) && !p.isFull(); i++ {
		p.writeParts("(")
	}
	p.writeNode(n.operands[0])
	for i := 0; i < len(n.ops) && !p.isFull(); i++ {
		p.writeParts(" ", n.ops[i], " ")
		p.writeNode(n.operands[i+1])
		p.writeParts(")")
	}
}

func (p *printer) writeInfix(left exprNode, op string, right exprNode) {
	p.writeParts("(")
	p.writeNode(left)
	p.writeParts(" ", op, " ")
	p.writeNode(right)
	p.writeParts(")")
}

func (p *printer) writeList(open string, nodes []exprNode, closing string) {
	p.writeParts(open)
	for i, n := range nodes {
		if i > 0 {
			p.writeParts(", ")
		}
		p.writeNode(n)
	}
	p.writeParts(closing)
}

// writeSpecial writes the nodes with a special syntax.
func (p *printer) writeSpecial(n exprNode) {
	switch n := n.(type) {
	case inNode:
		p.writeParts("(")
		p.writeNode(n.operand)
		p.writeList(" IN (", n.list, "))")
	case betweenNode:
		p.writeParts("(")
		p.writeNode(n.operand)
		p.writeParts(" BETWEEN ")
		p.writeNode(n.low)
		p.writeParts(" AND ")
		p.writeNode(n.high)
		p.writeParts(")")
	case likeNode:
		p.writeParts("(")
		p.writeNode(n.operand)
		p.writeParts(" LIKE ")
		p.writeNode(n.pattern)
		if n.escape != nil {
			p.writeParts(" ESCAPE ")
			p.writeNode(n.escape)
		}
		p.writeParts(")")
	case callNode:
		p.writeList(n.name+"(", n.args, ")")
	case arrayNode:
		p.writeList("[", n.items, "]")
	case objectNode:
		p.writeParts("{")
		for i, value := range n.values {
			if i > 0 {
				p.writeParts(", ")
			}
			p.writeParts(quoteJSON(n.names[i]), ": ")
			p.writeNode(value)
		}
		p.writeParts("}")
	case subqueryNode:
		p.writeParts(n.kind, "(")
		p.writeSelect(n.body)
		p.writeParts(")")
	}
}

// printAlias returns the name of a column, quoted if necessary.
func printAlias(name string) string {
	if isLetter(name[0]) && wordEnd(name, 0) == len(name) && !reserved[strings.ToUpper(name)] {
		return name
	}
	return quoteJSON(name)
}

func printNumber(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "(- Infinity)"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func quoteJSON(s string) string { return string(rawjson.AppendQuoted(nil, s)) }

func (p *printer) writeLiteral(n literalNode) {
	switch {
	case n.param != "" && !p.values:
		p.writeParts(n.param)
	case n.value.Kind == Undefined:
		p.writeParts("undefined")
	case n.value.Kind == Number:
		p.writeParts(printNumber(n.value.Num))
	default:
		p.Write(n.value.Append(nil))
	}
}

func (p *printer) writeSelect(s *selectNode) {
	p.writeParts("SELECT ")
	if s.distinct {
		p.writeParts("DISTINCT ")
	}
	if s.top != nil {
		p.writeCount("TOP ", s.top)
		p.writeParts(" ")
	}
	switch {
	case s.star:
		p.writeParts("*")
	case s.value != nil:
		p.writeParts("VALUE ")
		p.writeNode(s.value)
	}
	for i, c := range s.columns {
		if i > 0 {
			p.writeParts(", ")
		}
		p.writeNode(c.expr)
		if c.name != "" {
			p.writeParts(" AS ", printAlias(c.name))
		}
	}
	p.writeFrom(s.sources)
	if s.where != nil {
		p.writeParts(" WHERE ")
		p.writeNode(s.where)
	}
	if s.groupBy != nil {
		p.writeList(" GROUP BY ", s.groupBy, "")
	}
	for i, o := range s.orderBy {
		p.writeParts([]string{" ORDER BY ", ", "}[min(i, 1)])
		p.writeNode(o.path)
		p.writeParts(map[bool]string{false: " ASC", true: " DESC"}[o.descending])
	}
	if s.offset != nil {
		p.writeCount(" OFFSET ", s.offset)
		p.writeCount(" LIMIT ", s.limit)
	}
}

func (p *printer) writeFrom(sources []sourceNode) {
	for i, source := range sources {
		p.writeParts([]string{" FROM ", " JOIN "}[min(i, 1)])
		if source.each {
			p.writeParts(source.alias, " IN ")
		}
		p.writeNode(source.from)
		if !source.each && source.alias != "" {
			p.writeParts(" AS ", source.alias)
		}
	}
}

func (p *printer) writeCount(clause string, c *countNode) {
	if c.param != "" && !p.values {
		p.writeParts(clause, c.param)
		return
	}
	p.writeParts(clause, strconv.Itoa(c.n))
}
