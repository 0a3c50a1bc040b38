package filter

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/jmespath-community/go-jmespath/pkg/parsing"
)

// A linear is a function of the size of the current value: factor * size + constant.
type linear struct{ factor, constant float64 }

// maxValue returns the largest value of l for any metadata. In place of NaN it returns infinity, so
// that the value exceeds every limit.
func (l linear) maxValue() float64 {
	value := l.factor*maxSize + l.constant
	if math.IsNaN(value) {
		return math.Inf(1)
	}
	return value
}

func (l linear) plus(o linear) linear { return linear{l.factor + o.factor, l.constant + o.constant} }

func (l linear) times(n float64) linear { return linear{l.factor * n, l.constant * n} }

// composeWith returns the function that applies o first and l to the result.
func (l linear) composeWith(o linear) linear {
	return linear{l.factor * o.factor, l.factor*o.constant + l.constant}
}

func largerOf(a, b linear) linear {
	return linear{math.Max(a.factor, b.factor), math.Max(a.constant, b.constant)}
}

// A bound is an upper bound for the costs of a part of an expression. The size of a value is
// the length of its JSON text without escapes, as if no parts were shared, plus perValue for
// the value and each value in it.
type bound struct {
	size   linear // size of the result
	memory linear // memory that is allocated, in bytes

	// failure is the memory that an error allocates. The first error ends the evaluation,
	// except in three kinds of nodes, which continue without a value; see catchFailure.
	failure linear

	// reference is the bound of the expression in a function argument &expression; otherwise nil.
	reference *bound
}

// Numbers of bytes that the library allocates, measured and rounded up.
// TestNoAcceptedExpression_AllocatesMoreThanItsBound checks them.
const (
	perElement = 100 // bytes for each element of a list that grows by appending
	perSelect  = 48  // bytes for a list or an argument list, and again as many for each element that is selected or passed
	perHash    = 352 // bytes for an object of up to 8 members
	perMember  = 160 // bytes for each member of a larger object
	perNode    = 24  // bytes for a number or a comparison
	perSize    = 16  // bytes for each unit of size of an argument that is copied to a list or printed in an error
	perFailure = 640 // bytes for an error
	perEqual   = 40  // bytes for each unit of size of two values that are compared
)

// perValue is the part of a bound's size that each value adds, in addition to its JSON text.
const perValue = 8

// maxSize is the maximum size of metadata.
const maxSize = MaxMetadata + perValue*MaxValues

// maxElements returns the maximum number of elements of a list with the size list. Each element
// adds at least a character, a comma and perValue to the size.
func maxElements(list linear) linear { return list.times(1. / (perValue + 2)) }

// forEach returns the bound of a projection, which evaluates each on every element of list and
// returns a list of the results.
func forEach(list bound, each bound) bound {
	n := maxElements(list.size)
	b := bound{
		size: list.size.times(each.size.factor).plus(n.times(math.Max(0, each.size.constant+1-each.size.factor))).plus(linear{0, perValue + 2}),
		memory: list.memory.plus(list.size.times(each.memory.factor)).
			plus(n.times(each.memory.constant + perElement)).plus(linear{0, perSelect}),
	}
	b.failure = largerOf(list.failure, linear{list.size.factor * each.failure.factor, list.size.constant*each.failure.factor + each.failure.constant})
	return b
}

// catchFailure returns the bound of a node whose error does not end the evaluation. The memory of
// the error is added to the memory of the node, because a later error may also allocate memory.
func (b bound) catchFailure() bound {
	b.memory, b.failure = b.memory.plus(b.failure), linear{}
	return b
}

// followedBy returns the bound of two evaluations: the evaluation of b, and the evaluation of next on
// its result.
func (b bound) followedBy(next bound) bound {
	return bound{
		size: next.size.composeWith(b.size), memory: b.memory.plus(next.memory.composeWith(b.size)),
		failure: largerOf(b.failure, next.failure.composeWith(b.size)),
	}
}

// maxMemory returns the maximum number of bytes that an evaluation allocates for any metadata.
func (b bound) maxMemory() float64 { return b.memory.plus(b.failure).maxValue() + 4*perFailure }

// boundOf returns the bound of a node. It fails if the node has no linear bound.
func boundOf(node *parsing.ASTNode) (bound, error) {
	parts := make([]bound, len(node.Children))
	var sum bound // bound for the evaluation of all parts
	for i := range node.Children {
		var err error
		if parts[i], err = boundOf(&node.Children[i]); err != nil {
			return bound{}, err
		}
		if parts[i].reference != nil && node.NodeType != parsing.ASTFunctionExpression {
			return bound{}, fmt.Errorf("& is only for the functions map, max_by, min_by and sort_by")
		}
		sum.size, sum.memory = sum.size.plus(parts[i].size), sum.memory.plus(parts[i].memory)
		sum.failure = largerOf(sum.failure, parts[i].failure)
	}
	n := float64(len(parts))
	current := bound{size: linear{1, 0}}
	switch node.NodeType {
	case parsing.ASTIdentity, parsing.ASTCurrentNode, parsing.ASTIndex:
		return current, nil
	case parsing.ASTField:
		// The library also searches for a Go struct field, and allocates a string with its name.
		name, _ := node.Value.(string)
		current.memory.constant = 24 + 1.25*float64(len(name))
		return current, nil
	case parsing.ASTRootNode:
		return bound{size: linear{0, maxSize}}, nil
	case parsing.ASTLiteral:
		text, err := json.Marshal(node.Value)
		return bound{size: linear{0, float64(len(text) + perValue*countValues(node.Value))}}, err
	case parsing.ASTSlice:
		current.memory = linear{32, perSelect}
		return current, nil
	case parsing.ASTSubexpression, parsing.ASTIndexExpression, parsing.ASTPipe:
		b := parts[0]
		for _, next := range parts[1:] {
			b = b.followedBy(next)
		}
		return b, nil
	case parsing.ASTProjection:
		return forEach(parts[0], parts[1]), nil
	case parsing.ASTValueProjection:
		values := parts[0].catchFailure()
		values.memory = values.memory.plus(maxElements(values.size).times(perElement))
		return forEach(values, parts[1]), nil
	case parsing.ASTFilterProjection:
		list, each := parts[0].catchFailure(), parts[1]
		each.memory = each.memory.plus(parts[2].memory)
		each.failure = largerOf(each.failure, parts[2].failure)
		return forEach(list, each), nil
	case parsing.ASTFlatten:
		return forEach(parts[0].catchFailure(), current), nil
	case parsing.ASTMultiSelectList:
		sum.size.constant += n + 2 + perValue
		sum.memory.constant += perSelect * (n + 1)
		return sum, nil
	case parsing.ASTMultiSelectHash:
		for _, member := range node.Children {
			name, _ := member.Value.(string)
			sum.size.constant += float64(len(name)) + 4
		}
		sum.size.constant += 2 + perValue
		sum.memory.constant += perHash + 16*n
		if n > 8 {
			sum.memory.constant += perMember * n
		}
		return sum, nil
	case parsing.ASTKeyValPair:
		return parts[0], nil
	case parsing.ASTOrExpression, parsing.ASTAndExpression:
		sum.size = largerOf(largerOf(parts[0].size, parts[1].size), linear{0, 5 + perValue})
		return sum, nil
	case parsing.ASTNotExpression, parsing.ASTArithmeticExpression, parsing.ASTArithmeticUnaryExpression:
		sum.size = linear{0, 24 + perValue}
		sum.memory.constant += perNode
		return sum, nil
	case parsing.ASTComparator:
		// A comparison stops at the end of the smaller value.
		smaller := parts[0].size
		if parts[1].size.maxValue() < smaller.maxValue() {
			smaller = parts[1].size
		}
		sum.size = linear{0, 5 + perValue}
		sum.memory = sum.memory.plus(smaller.times(perEqual)).plus(linear{0, 2 * perNode})
		return sum, nil
	case parsing.ASTExpRef:
		return bound{reference: &parts[0]}, nil
	case parsing.ASTFunctionExpression:
		name, _ := node.Value.(string)
		return boundOfCall(name, parts, sum)
	case parsing.ASTEmpty, parsing.ASTLetExpression, parsing.ASTVariable, parsing.ASTBindings, parsing.ASTBinding:
	}
	return bound{}, fmt.Errorf("%s is not supported", node.NodeType)
}

// boundOfCall returns the bound of a function call. sum is the sum of the bounds in args.
func boundOfCall(name string, args []bound, sum bound) (bound, error) {
	shape, ok := shapes[name]
	if !ok {
		return bound{}, fmt.Errorf("there is no function %s; let and functions beyond those of JMESPath are not supported", name)
	}
	for i := range args {
		wanted := shape == mapped && i == 0 || (shape == ordered || shape == chosen) && i == 1
		if wanted != (args[i].reference != nil) {
			return bound{}, fmt.Errorf("the arguments of %s are of other types", name)
		}
	}
	b := sum
	// Reading the arguments takes time, which MaxMemory also limits: each byte of the arguments
	// counts as a byte of memory.
	b.memory = b.memory.plus(sum.size).plus(linear{0, perSelect * float64(len(args)+1)})
	b.failure = largerOf(b.failure, sum.size.times(perSize).plus(linear{0, perFailure}))
	copies := sum.size.times(perSize) // memory for copies of lists and their elements
	switch shape {
	case scalar:
		b.size = linear{0, 24 + perValue}
		switch name {
		case "abs", "ceil", "contains", "ends_with", "floor", "length", "starts_with", "to_number", "type":
			b.memory.constant += perNode
		default:
			b.memory = b.memory.plus(copies)
		}
	case anElement, all:
		b.memory = b.memory.plus(copies)
		b.memory.constant += perHash
		b.size.constant += 2 + perValue
	case asText:
		b.size = sum.size.times(6).plus(linear{0, 2 + perValue})
		b.memory = b.memory.plus(sum.size.times(6 * 6)).plus(linear{0, perFailure})
	case joined:
		if len(args) != 2 {
			return bound{}, fmt.Errorf("join wants two arguments")
		}
		if args[0].size.factor != 0 {
			return bound{}, fmt.Errorf("the first argument of join has to be a literal")
		}
		b.size = args[1].size.plus(maxElements(args[1].size).times(args[0].size.constant))
		b.memory = b.memory.plus(copies).plus(maxElements(args[1].size).times(perElement)).plus(b.size)
	case mapped, ordered, chosen:
		if len(args) != 2 {
			return bound{}, fmt.Errorf("%s wants two arguments", name)
		}
		list, each := args[0], args[1]
		if shape == mapped {
			list, each = each, list
		}
		b = forEach(list, *each.reference)
		b.memory = b.memory.plus(list.size.times(perSize)).plus(linear{0, 3 * perSelect})
		b.failure = largerOf(b.failure, list.size.times(perSize).plus(linear{0, perFailure}))
		if shape != mapped {
			b.size = list.size
		}
	}
	return b, nil
}
