package query

// An exprNode is a parsed expression. The compiler converts it to an expr after the whole query was parsed, because
// SELECT precedes FROM but uses aliases of FROM.
type exprNode interface {
	// textOffset returns the offset of the expression or its operator in the text of the query.
	textOffset() int
}

type textPosition int

func (p textPosition) textOffset() int { return int(p) }

type (
	// A literalNode is a constant or the value of a parameter.
	literalNode struct {
		textPosition
		value Value
		param string // name of the parameter, with its @; "" for a constant
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
	// An indexNode is base[index], where index is not a constant string.
	indexNode struct {
		textPosition
		base, index exprNode
	}
	unaryNode struct {
		textPosition
		op      string
		operand exprNode
	}
	// A chainNode is a list of operands joined by operators of the same precedence, such as AND, + or ||. It is a flat
	// list, so that a long chain does not become a deep tree. Its position is that of the last operator.
	chainNode struct {
		textPosition
		ops      []string // one operator fewer than operands
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
	value    exprNode // value is the expression of SELECT VALUE
	columns  []columnNode
	sources  []sourceNode
	where    exprNode
	groupBy  []exprNode
	orderAt  int // position of the word ORDER
	orderBy  []orderNode
	offset   *countNode // set only together with limit
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
	each  bool     // true for "alias IN from", where alias iterates over the elements of from
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

// walkNode visits n. If visit returns true, it also visits the children of n. It does not enter subqueries.
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
