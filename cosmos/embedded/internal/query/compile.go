package query

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A compiler turns nodes into exprs. It gives every path into the document
// and every alias a slot.
type compiler struct {
	now   func() time.Time
	start time.Time // what the Static functions of the clock give

	extra int // slots before those of the paths
	used  int // of them
	paths []rawjson.Path
	found map[string]int // the slot of each path, by its key

	slots *Slots // for expressions of constants, which are evaluated once

	// perRow is set by every expression that depends on an alias of the
	// outermost JOIN, so that it has to be evaluated again for each row.
	perRow bool
}

// A scope holds the aliases of one SELECT.
type scope struct {
	outer   *scope
	aliases map[string]alias
	// container says that the first FROM may name the container, which no
	// alias stands for yet.
	container bool
	// group is set where only keys and aggregates may be named.
	group *grouping
}

// An alias stands for the document or for what a slot holds.
type alias struct {
	document bool
	slot     int
}

// take returns a slot that is not of a path.
func (c *compiler) take() int {
	c.used++
	return c.used
}

// slot returns the slot of a path into the document, the same for equal paths.
func (c *compiler) slot(path rawjson.Path) int {
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

// pathKey returns a text that differs for different paths.
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

func samePath(a, b rawjson.Path) bool {
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

// expr compiles n. Constant parts are evaluated here, once.
func (c *compiler) expr(n node, s *scope) (expr, error) {
	if key, ok := s.group.key(n); ok {
		return key, nil
	}
	switch n := n.(type) {
	case literalNode:
		return constant{n.value}, nil
	case nameNode, memberNode, indexNode:
		return c.steps(n, s)
	case unaryNode:
		return c.unary(n, s)
	case chainNode:
		return c.chain(n, s)
	case binaryNode:
		return c.comparison(n, s)
	case ternaryNode:
		e, err := c.exprs(s, n.condition, n.then, n.otherwise)
		if err != nil {
			return nil, err
		}
		return c.fold(ternary{e[0], e[1], e[2]}, e), nil
	case inNode:
		e, err := c.exprs(s, append([]node{n.operand}, n.list...)...)
		if err != nil {
			return nil, err
		}
		return c.fold(newMembership(e[0], e[1:]), e), nil
	case betweenNode:
		e, err := c.exprs(s, n.operand, n.low, n.high)
		if err != nil {
			return nil, err
		}
		return c.fold(logical{true, []expr{comparison{">=", e[0], e[1]}, comparison{"<=", e[0], e[2]}}}, e), nil
	case likeNode:
		return c.like(n, s)
	case callNode:
		return c.call(n, s)
	case objectNode:
		e, err := c.exprs(s, n.values...)
		if err != nil {
			return nil, err
		}
		return c.fold(object{n.names, e}, e), nil
	case arrayNode:
		e, err := c.exprs(s, n.items...)
		if err != nil {
			return nil, err
		}
		return c.fold(array{e}, e), nil
	case subqueryNode:
		body, err := c.selection(n.body, s, false)
		return subquery{n.kind, n.textOffset(), body}, err
	}
	return nil, &Error{n.textOffset(), "this expression is not supported"}
}

func (c *compiler) exprs(s *scope, nodes ...node) ([]expr, error) {
	list := make([]expr, len(nodes))
	for i, n := range nodes {
		e, err := c.expr(n, s)
		if err != nil {
			return nil, err
		}
		list[i] = e
	}
	return list, nil
}

// fold evaluates e if all its parts are constant.
func (c *compiler) fold(e expr, parts []expr) expr {
	if isConstant(parts) {
		return constant{e.eval(c.slots)}
	}
	return e
}

func isConstant(list []expr) bool {
	for _, e := range list {
		if _, ok := e.(constant); !ok {
			return false
		}
	}
	return true
}

// steps compiles a name or steps into a value. What the steps begin with may be a
// key of GROUP BY.
func (c *compiler) steps(n node, s *scope) (expr, error) {
	if name, path, ok := asPath(n); ok && (s.group == nil || len(path) == 0) {
		return c.resolve(name, path, s)
	}
	base, steps := n, []node(nil) // from the last
	for isStep(base) {
		steps = append(steps, base)
		if member, ok := base.(memberNode); ok {
			base = member.base
		} else {
			base = base.(indexNode).base
		}
	}
	root, steps, err := c.stepsFrom(base, steps, s)
	if err != nil {
		return nil, err
	}
	e := element{base: root}
	for _, step := range slices.Backward(steps) {
		if member, ok := step.(memberNode); ok {
			e.indexes = append(e.indexes, constant{Value{Kind: String, Text: []byte(member.name)}})
			continue
		}
		index, err := c.expr(step.(indexNode).index, s)
		if err != nil {
			return nil, err
		}
		e.indexes = append(e.indexes, index)
	}
	return c.fold(e, append(e.indexes, root)), nil
}

// stepsFrom compiles the longest part of base and steps that is a key of GROUP BY,
// or base, and returns the steps after it.
func (c *compiler) stepsFrom(base node, steps []node, s *scope) (expr, []node, error) {
	const shortest = len("[0]")
	for i := max(1, len(steps)-maxKey/shortest); s.group != nil && i < len(steps); i++ {
		if key, ok := s.group.key(steps[i]); ok {
			return key, steps[:i], nil
		}
	}
	root, err := c.expr(base, s)
	return root, steps, err
}

func isStep(n node) bool {
	switch n.(type) {
	case memberNode, indexNode:
		return true
	}
	return false
}

// asPath takes apart a name and constant steps after it.
func asPath(n node) (name nameNode, path rawjson.Path, ok bool) {
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

// resolve finds what name stands for, from the innermost SELECT outwards.
func (c *compiler) resolve(name nameNode, path rawjson.Path, s *scope) (expr, error) {
	for ; s != nil; s = s.outer {
		a, ok := s.aliases[name.name]
		switch {
		case !ok:
			continue
		case s.group != nil:
			return nil, &Error{name.textOffset(), fmt.Sprintf("property reference %q is invalid in the select list because it is not contained in either an aggregate function or the GROUP BY clause", name.name)}
		case a.document:
			return property{c.slot(path)}, nil
		}
		if s.outer == nil {
			c.perRow = true
		}
		return variable{a.slot, path}, nil
	}
	return nil, &Error{name.textOffset(), fmt.Sprintf("identifier %q could not be resolved", name.name)}
}

func (c *compiler) unary(n unaryNode, s *scope) (expr, error) {
	operand, err := c.expr(n.operand, s)
	if err != nil {
		return nil, err
	}
	var e expr
	switch n.op {
	case "NOT":
		e = negation{operand}
	case "~":
		e = complement{operand}
	case "-":
		e = sign{operand, -1}
	default:
		e = sign{operand, 1}
	}
	return c.fold(e, []expr{operand}), nil
}

// chain compiles operands that are joined from the left. The first of them may be a
// key of GROUP BY.
func (c *compiler) chain(n chainNode, s *scope) (expr, error) {
	first, at, err := c.firstOperands(n, s)
	if err != nil {
		return nil, err
	}
	rest, err := c.exprs(s, n.operands[at:]...)
	if err != nil {
		return nil, err
	}
	all := append([]expr{first}, rest...)
	switch n.ops[0] {
	case "AND", "OR":
		return c.fold(newLogical(n.ops[0] == "AND", all), all), nil
	case "??":
		return c.fold(coalesce{all}, all), nil
	}
	e := arithmetic{first: first}
	for i, operand := range rest {
		e.rest = append(e.rest, arithmeticStep{operations[n.ops[at-1+i]], operand})
	}
	return c.fold(e, all), nil
}

// firstOperands compiles the longest part of a chain that is a key of GROUP BY, or
// the first operand, and returns how many operands that are.
func (c *compiler) firstOperands(n chainNode, s *scope) (expr, int, error) {
	const shortest = len("( + ")
	if s.group != nil && len(s.group.keys) > 0 {
		for k := min(len(n.operands)-1, maxKey/shortest); k > 1; k-- {
			if key, ok := s.group.key(chainNode{n.position, n.ops[:k-1], n.operands[:k]}); ok {
				return key, k, nil
			}
		}
	}
	e, err := c.expr(n.operands[0], s)
	return e, 1, err
}

func (c *compiler) comparison(n binaryNode, s *scope) (expr, error) {
	both, err := c.exprs(s, n.left, n.right)
	if err != nil {
		return nil, err
	}
	return c.fold(comparison{n.op, both[0], both[1]}, both), nil
}

func (c *compiler) call(n callNode, s *scope) (expr, error) {
	if isAggregate(n.name) {
		return c.aggregate(n, s)
	}
	args, err := c.exprs(s, n.args...)
	if err != nil {
		return nil, err
	}
	if make, ok := special[n.name]; ok {
		return make(c, n, args)
	}
	return c.fold(newCall(n.name, functions[n.name].fn, args), args), nil
}

// aggregate gives an aggregate the slot that its group will put the result in.
func (c *compiler) aggregate(n callNode, s *scope) (expr, error) {
	if s.group == nil {
		return nil, &Error{n.textOffset(), "an aggregate is supported only in SELECT, and not inside another one"}
	}
	rows := *s
	rows.group = nil
	arg, err := c.expr(n.args[0], &rows)
	if err != nil {
		return nil, err
	}
	a := aggregate{n.name, arg, c.take()}
	s.group.aggregates = append(s.group.aggregates, a)
	return variable{slot: a.slot}, nil
}
