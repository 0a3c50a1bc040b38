package query

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A compiler converts nodes to exprs. It assigns a slot to each path into the document and each alias.
type compiler struct {
	now    func() time.Time
	random func() float64 // returns a number in [0, 1)
	start  time.Time      // time that the clock functions with names ending in STATIC return

	extra int // number of slots before the slots of the paths
	used  int // number of extra slots that are assigned
	paths []rawjson.Path
	found map[string]int // slot of each path, by pathKey

	// bound maps a slot to the value of its alias, if the alias has one value in each row: a path, or the SELECT
	// expression of a subquery.
	bound map[int]expr

	slots *Slots // used to evaluate constant expressions once

	// perRow is set when an expression uses an alias of a JOIN in the outermost SELECT, so that it must be evaluated
	// for each row.
	perRow bool
}

// A scope contains the aliases of one SELECT.
type scope struct {
	outer   *scope
	aliases map[string]alias
	// container is true while the first FROM may refer to the container.
	container bool
	// group is set where expressions may use only group keys and aggregates.
	group *grouping
}

// An alias refers to the document or to a slot.
type alias struct {
	document bool
	slot     int
}

// takeSlot assigns a slot to a value that is not a path.
func (c *compiler) takeSlot() int {
	c.used++
	return c.used
}

// pathSlot returns the slot of a path into the document. Equal paths share a slot.
func (c *compiler) pathSlot(path rawjson.Path) int {
	key := pathKey(path)
	slot, ok := c.found[key]
	if !ok {
		if c.found == nil {
			c.found = map[string]int{}
		}
		slot = c.extra + len(c.paths)
		c.paths, c.found[key] = append(c.paths, path), slot
	}
	return slot
}

// pathKey returns a text that identifies a path.
func pathKey(path rawjson.Path) string {
	var key []byte
	for _, step := range path {
		if step.Array {
			key = append(strconv.AppendInt(append(key, '['), int64(step.Index), 10), ']')
			continue
		}
		key = strconv.AppendInt(append(key, '.'), int64(len(step.Name)), 10)
		key = append(append(key, ':'), step.Name...)
	}
	return string(key)
}

func isSamePath(a, b rawjson.Path) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// compileExpr compiles n. It evaluates constant parts immediately.
func (c *compiler) compileExpr(n exprNode, s *scope) (expr, error) {
	if key, ok := s.group.findKey(n); ok {
		return key, nil
	}
	switch n := n.(type) {
	case literalNode:
		return constantExpr{n.value}, nil
	case nameNode, memberNode, indexNode:
		return c.compileSteps(n, s)
	case unaryNode:
		return c.compileUnary(n, s)
	case chainNode:
		return c.compileChain(n, s)
	case binaryNode:
		return c.compileComparison(n, s)
	case ternaryNode:
		e, err := c.compileExprs(s, n.condition, n.then, n.otherwise)
		if err != nil {
			return nil, err
		}
		return c.foldConstant(ternaryExpr{e[0], e[1], e[2]}, e), nil
	case inNode:
		e, err := c.compileExprs(s, append([]exprNode{n.operand}, n.list...)...)
		if err != nil {
			return nil, err
		}
		return c.foldConstant(newMembership(e[0], e[1:]), e), nil
	case betweenNode:
		e, err := c.compileExprs(s, n.operand, n.low, n.high)
		if err != nil {
			return nil, err
		}
		return c.foldConstant(logicalExpr{true, []expr{comparisonExpr{">=", e[0], e[1]}, comparisonExpr{"<=", e[0], e[2]}}}, e), nil
	case likeNode:
		return c.compileLike(n, s)
	case callNode:
		return c.compileCall(n, s)
	case objectNode:
		e, err := c.compileExprs(s, n.values...)
		if err != nil {
			return nil, err
		}
		return c.foldConstant(objectExpr{n.names, e}, e), nil
	case arrayNode:
		e, err := c.compileExprs(s, n.items...)
		if err != nil {
			return nil, err
		}
		return c.foldConstant(arrayExpr{e}, e), nil
	case subqueryNode:
		body, err := c.compileSelect(n.body, s, false)
		return subqueryExpr{n.kind, n.textOffset(), body}, err
	}
	return nil, &Error{n.textOffset(), "this expression is not supported"}
}

func (c *compiler) compileExprs(s *scope, nodes ...exprNode) ([]expr, error) {
	list := make([]expr, len(nodes))
	for i, n := range nodes {
		e, err := c.compileExpr(n, s)
		if err != nil {
			return nil, err
		}
		list[i] = e
	}
	return list, nil
}

// foldConstant evaluates e if all parts are constant. Otherwise it returns e.
func (c *compiler) foldConstant(e expr, parts []expr) expr {
	if isConstant(parts) {
		return constantExpr{e.evalRow(c.slots)}
	}
	return e
}

func isConstant(list []expr) bool {
	for _, e := range list {
		if _, ok := e.(constantExpr); !ok {
			return false
		}
	}
	return true
}

// compileSteps compiles a name, or a value with steps. The value with its first steps may be a GROUP BY key.
func (c *compiler) compileSteps(n exprNode, s *scope) (expr, error) {
	if name, path, ok := asPath(n); ok && (s.group == nil || len(path) == 0) {
		return c.resolveName(name, path, s)
	}
	base, steps := n, []exprNode(nil) // steps, from the last to the first
	for isStep(base) {
		steps = append(steps, base)
		if member, ok := base.(memberNode); ok {
			base = member.base
		} else {
			base = base.(indexNode).base
		}
	}
	root, steps, err := c.compileBase(base, steps, s)
	if err != nil {
		return nil, err
	}
	e := elementExpr{base: root}
	for _, step := range slices.Backward(steps) {
		if member, ok := step.(memberNode); ok {
			e.indexes = append(e.indexes, constantExpr{Value{Kind: String, Text: []byte(member.name)}})
			continue
		}
		index, err := c.compileExpr(step.(indexNode).index, s)
		if err != nil {
			return nil, err
		}
		e.indexes = append(e.indexes, index)
	}
	return c.foldConstant(e, append(e.indexes, root)), nil
}

// compileBase compiles base with as many steps as form a GROUP BY key; if none do, it compiles base alone. It returns
// the remaining steps.
func (c *compiler) compileBase(base exprNode, steps []exprNode, s *scope) (expr, []exprNode, error) {
	const shortest = len("[0]")
	for i := max(1, len(steps)-maxKeyText/shortest); s.group != nil && i < len(steps); i++ {
		if key, ok := s.group.findKey(steps[i]); ok {
			return key, steps[:i], nil
		}
	}
	root, err := c.compileExpr(base, s)
	return root, steps, err
}

func isStep(n exprNode) bool {
	switch n.(type) {
	case memberNode, indexNode:
		return true
	}
	return false
}

// asPath splits n into a name and the constant steps after it.
func asPath(n exprNode) (name nameNode, path rawjson.Path, ok bool) {
	switch n := n.(type) {
	case nameNode:
		return n, rawjson.Path{}, true
	case memberNode:
		name, path, ok = asPath(n.base)
		return name, append(path, rawjson.Step{Name: n.name}), ok
	case indexNode:
		i, whole := wholeNumber(n.index)
		name, path, ok = asPath(n.base)
		return name, append(path, rawjson.Step{Array: true, Index: i}), ok && whole
	}
	return nameNode{}, nil, false
}

// resolveName finds the alias that a name refers to, from the innermost SELECT outward.
func (c *compiler) resolveName(name nameNode, path rawjson.Path, s *scope) (expr, error) {
	for ; s != nil; s = s.outer {
		a, ok := s.aliases[name.name]
		switch {
		case !ok:
			continue
		case s.group != nil:
			return nil, &Error{name.textOffset(), fmt.Sprintf("property reference %q is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause", name.name)}
		case a.document:
			return pathExpr{c.pathSlot(path)}, nil
		}
		if s.outer == nil {
			c.perRow = true
		}
		return variableExpr{a.slot, path}, nil
	}
	return nil, &Error{name.textOffset(), fmt.Sprintf("identifier %q could not be resolved", name.name)}
}

func (c *compiler) bindSlot(slot int, value expr) {
	if c.bound == nil {
		c.bound = map[int]expr{}
	}
	c.bound[slot] = value
}

// documentPath returns the path of a value in the document, if e stands for such a path: an alias of a path, or of a
// subquery that selects a path.
func (c *compiler) documentPath(e expr, path rawjson.Path) (rawjson.Path, bool) {
	switch e := e.(type) {
	case pathExpr:
		return slices.Concat(c.paths[e.slot-c.extra], path), true
	case variableExpr:
		if value, ok := c.bound[e.slot]; ok {
			return c.documentPath(value, slices.Concat(e.path, path))
		}
	case objectExpr:
		if len(path) == 0 || path[0].Array {
			return nil, false
		}
		if i := slices.Index(e.names, path[0].Name); i >= 0 {
			return c.documentPath(e.values[i], path[1:])
		}
	}
	return nil, false
}

func (c *compiler) compileUnary(n unaryNode, s *scope) (expr, error) {
	operand, err := c.compileExpr(n.operand, s)
	if err != nil {
		return nil, err
	}
	var e expr
	switch n.op {
	case "NOT":
		e = negationExpr{operand}
	case "~":
		e = complementExpr{operand}
	case "-":
		e = signExpr{operand, -1}
	default:
		e = signExpr{operand, 1}
	}
	return c.foldConstant(e, []expr{operand}), nil
}

// compileChain compiles a chain of operands. Its first operands may form a GROUP BY key.
func (c *compiler) compileChain(n chainNode, s *scope) (expr, error) {
	first, at, err := c.compileFirstOperands(n, s)
	if err != nil {
		return nil, err
	}
	rest, err := c.compileExprs(s, n.operands[at:]...)
	if err != nil {
		return nil, err
	}
	all := append([]expr{first}, rest...)
	switch n.ops[0] {
	case "AND", "OR":
		return c.foldConstant(newLogical(n.ops[0] == "AND", all), all), nil
	case "??":
		return c.foldConstant(coalesceExpr{all}, all), nil
	}
	e := arithmeticExpr{first: first}
	for i, operand := range rest {
		e.rest = append(e.rest, arithmeticStep{operations[n.ops[at-1+i]], operand})
	}
	return c.foldConstant(e, all), nil
}

// compileFirstOperands compiles as many operands as form a GROUP BY key; if none do, it compiles the first operand. It
// returns the number of compiled operands.
func (c *compiler) compileFirstOperands(n chainNode, s *scope) (expr, int, error) {
	const shortest = len("( + ")
	if s.group != nil && len(s.group.keys) > 0 {
		for k := min(len(n.operands)-1, maxKeyText/shortest); k > 1; k-- {
			if key, ok := s.group.findKey(chainNode{n.textPosition, n.ops[:k-1], n.operands[:k]}); ok {
				return key, k, nil
			}
		}
	}
	e, err := c.compileExpr(n.operands[0], s)
	return e, 1, err
}

func (c *compiler) compileComparison(n binaryNode, s *scope) (expr, error) {
	both, err := c.compileExprs(s, n.left, n.right)
	if err != nil {
		return nil, err
	}
	return c.foldConstant(comparisonExpr{n.op, both[0], both[1]}, both), nil
}

func (c *compiler) compileCall(n callNode, s *scope) (expr, error) {
	if isAggregate(n.name) {
		return c.compileAggregate(n, s)
	}
	args, err := c.compileExprs(s, n.args...)
	if err != nil {
		return nil, err
	}
	if make, ok := special[n.name]; ok {
		return make(c, n, args)
	}
	return c.foldConstant(newCall(n.name, functions[n.name].fn, args), args), nil
}

// compileAggregate assigns the slot in which the group stores the aggregate's result.
func (c *compiler) compileAggregate(n callNode, s *scope) (expr, error) {
	if s.group == nil {
		return nil, &Error{n.textOffset(), "an aggregate is supported only in SELECT, and not inside another one"}
	}
	rows := *s
	rows.group = nil
	arg, err := c.compileExpr(n.args[0], &rows)
	if err != nil {
		return nil, err
	}
	a := aggregate{n.name, arg, c.takeSlot()}
	s.group.aggregates = append(s.group.aggregates, a)
	return variableExpr{slot: a.slot}, nil
}
