package query

// An exprNode is one parsed expression. The compiler turns it into an expr after the whole
// query was parsed, because SELECT comes before FROM and uses the aliases of FROM.
type exprNode interface {
	// textOffset returns the offset in the text at which the expression, or its operator, starts.
	textOffset() int
}

type textPosition int

func (p textPosition) textOffset() int { return int(p) }

type (
	// A literalNode is a constant, or the value of @param.
	literalNode struct {
		textPosition
		value Value
		param string // name with its @; "" for a constant
	}
	nameNode struct {
		textPosition
		name string
	}
	// A memberNode is base.name or base["name"].
	memberNode struct {
		textPosition
		base exprNode
		name string
	}
	// An indexNode is base[index] with an index that is not a constant string.
	indexNode struct {
		textPosition
		base, index exprNode
	}
	unaryNode struct {
		textPosition
		op      string
		operand exprNode
	}
	// A chainNode joins operands by operators of one precedence, from left to right: AND, OR,
	// ??, arithmetic and bit operators, or ||. It is flat, so that a long chain is not a deep
	// tree. Its position is the position of the last operator.
	chainNode struct {
		textPosition
		ops      []string // one fewer than operands
		operands []exprNode
	}
	// A binaryNode is a comparison.
	binaryNode struct {
		textPosition
		op          string
		left, right exprNode
	}
	ternaryNode struct {
		textPosition
		condition, then, otherwise exprNode
	}
	inNode struct {
		textPosition
		operand exprNode
		list    []exprNode
	}
	betweenNode struct {
		textPosition
		operand, low, high exprNode
	}
	likeNode struct {
		textPosition
		operand, pattern exprNode
		escape           exprNode // nil: none
	}
	callNode struct {
		textPosition
		name string // upper case
		args []exprNode
	}
	objectNode struct {
		textPosition
		names  []string
		values []exprNode
	}
	arrayNode struct {
		textPosition
		items []exprNode
	}
	// A subqueryNode is (SELECT …), EXISTS(SELECT …) or ARRAY(SELECT …).
	subqueryNode struct {
		textPosition
		kind string // "", "EXISTS" or "ARRAY"
		body *selectNode
	}
)

// A selectNode is a whole query.
type selectNode struct {
	textPosition
	distinct bool
	top      *countNode
	star     bool
	value    exprNode // expression of SELECT VALUE
	columns  []columnNode
	sources  []sourceNode
	where    exprNode
	groupBy  []exprNode
	orderAt  int // position of ORDER
	orderBy  []orderNode
	offset   *countNode // nil if limit is nil
	limit    *countNode
}

type columnNode struct {
	textPosition
	expr exprNode
	name string // "" without AS
}

// A sourceNode is one part of FROM or JOIN.
type sourceNode struct {
	textPosition
	alias string
	each  bool     // alias IN from: alias iterates over the elements
	from  exprNode // a path or a subqueryNode
}

type orderNode struct {
	textPosition
	path       exprNode
	descending bool
}

// A countNode is the number of TOP, OFFSET or LIMIT.
type countNode struct {
	textPosition
	n     int
	param string
}

// walkNode visits n and, if visit returns true, its children. It does not enter subqueries.
func walkNode(n exprNode, visit func(exprNode) bool) {
	if n == nil || !visit(n) {
		return
	}
	for _, part := range childNodes(n) {
		walkNode(part, visit)
	}
}

func childNodes(n exprNode) []exprNode {
	switch n := n.(type) {
	case memberNode:
		return []exprNode{n.base}
	case indexNode:
		return []exprNode{n.base, n.index}
	case unaryNode:
		return []exprNode{n.operand}
	case chainNode:
		return n.operands
	case binaryNode:
		return []exprNode{n.left, n.right}
	case ternaryNode:
		return []exprNode{n.condition, n.then, n.otherwise}
	case inNode:
		return append([]exprNode{n.operand}, n.list...)
	case betweenNode:
		return []exprNode{n.operand, n.low, n.high}
	case likeNode:
		return []exprNode{n.operand, n.pattern, n.escape}
	case callNode:
		return n.args
	case objectNode:
		return n.values
	case arrayNode:
		return n.items
	}
	return nil
}
