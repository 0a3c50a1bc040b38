package query

// A node is one expression as it was written. Nodes know no documents: compile
// turns them into an expr once all aliases are known, because SELECT comes
// before FROM and already uses the aliases that FROM gives.
type node interface {
	// textOffset returns where the expression, or its operator, starts in the text.
	textOffset() int
}

type position int

func (p position) textOffset() int { return int(p) }

type (
	// A literalNode is a constant, or the value of @param.
	literalNode struct {
		position
		value Value
		param string // with its @, "" for a constant
	}
	nameNode struct {
		position
		name string
	}
	// A memberNode is base.name and base["name"].
	memberNode struct {
		position
		base node
		name string
	}
	// An indexNode is base[index] with any other index.
	indexNode struct {
		position
		base, index node
	}
	unaryNode struct {
		position
		op      string
		operand node
	}
	// A chainNode joins operands by operators of one level, from the left: by
	// AND, by OR, by ??, or by those of arithmetic, bits and ||. It is flat, so
	// that a long chain is not a deep tree. Its position is that of the last
	// operator.
	chainNode struct {
		position
		ops      []string // one fewer than operands
		operands []node
	}
	// A binaryNode is a comparison.
	binaryNode struct {
		position
		op          string
		left, right node
	}
	ternaryNode struct {
		position
		condition, then, otherwise node
	}
	inNode struct {
		position
		operand node
		list    []node
	}
	betweenNode struct {
		position
		operand, low, high node
	}
	likeNode struct {
		position
		operand, pattern node
		escape           node // nil: none
	}
	callNode struct {
		position
		name string // upper case
		args []node
	}
	objectNode struct {
		position
		names  []string
		values []node
	}
	arrayNode struct {
		position
		items []node
	}
	// A subqueryNode is (SELECT …), EXISTS(SELECT …) or ARRAY(SELECT …).
	subqueryNode struct {
		position
		kind string // "", "EXISTS" or "ARRAY"
		body *selectNode
	}
)

// A selectNode is a whole query.
type selectNode struct {
	position
	distinct bool
	top      *countNode
	star     bool
	value    node // of SELECT VALUE
	columns  []columnNode
	sources  []sourceNode
	where    node
	groupBy  []node
	orderAt  int // where ORDER stands
	orderBy  []orderNode
	offset   *countNode // with limit
	limit    *countNode
}

type columnNode struct {
	position
	expr node
	name string // "" without AS
}

// A sourceNode is one part of FROM or JOIN.
type sourceNode struct {
	position
	alias string
	each  bool // alias IN from: alias is each element in turn
	from  node // a path or a subqueryNode
}

type orderNode struct {
	position
	path       node
	descending bool
}

// A countNode is the number of TOP, OFFSET or LIMIT.
type countNode struct {
	position
	n     int
	param string
}

// walk visits n and, as long as visit returns true, its parts. It does not
// enter subqueries.
func walk(n node, visit func(node) bool) {
	if n == nil || !visit(n) {
		return
	}
	for _, part := range parts(n) {
		walk(part, visit)
	}
}

func parts(n node) []node {
	switch n := n.(type) {
	case memberNode:
		return []node{n.base}
	case indexNode:
		return []node{n.base, n.index}
	case unaryNode:
		return []node{n.operand}
	case chainNode:
		return n.operands
	case binaryNode:
		return []node{n.left, n.right}
	case ternaryNode:
		return []node{n.condition, n.then, n.otherwise}
	case inNode:
		return append([]node{n.operand}, n.list...)
	case betweenNode:
		return []node{n.operand, n.low, n.high}
	case likeNode:
		return []node{n.operand, n.pattern, n.escape}
	case callNode:
		return n.args
	case objectNode:
		return n.values
	case arrayNode:
		return n.items
	}
	return nil
}
