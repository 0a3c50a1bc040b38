package query

import "unicode/utf8"

// likeExpr matches a string with a pattern of LIKE.
type likeExpr struct {
	operand, pattern, escape expr // escape is nil without ESCAPE
	ready                    []likePart
	known                    bool // true if the pattern is constant and already parsed
}

func (c *compiler) compileLike(n likeNode, s *scope) (expr, error) {
	nodes := []exprNode{n.operand, n.pattern}
	if n.escape != nil {
		nodes = append(nodes, n.escape)
	}
	e, err := c.compileExprs(s, nodes...)
	if err != nil {
		return nil, err
	}
	l := likeExpr{operand: e[0], pattern: e[1]}
	if n.escape != nil {
		l.escape = e[2]
		v, isConstant := l.escape.(constantExpr)
		if isConstant && (v.value.Kind != String || utf8.RuneCount(v.value.Text) != 1) {
			return nil, &Error{n.escape.textOffset(), "ESCAPE wants one character"}
		}
	}
	if isConstant(e[1:]) {
		l.ready, l.known = l.patternParts(c.slots)
	}
	return c.foldConstant(l, e), nil
}

// patternParts parses the pattern. ok is false if the pattern is not a string or escape is not a single character.
func (e likeExpr) patternParts(slots *Slots) (parts []likePart, ok bool) {
	pattern := e.pattern.evalRow(slots)
	escape := utf8.RuneError
	if e.escape != nil {
		v := e.escape.evalRow(slots)
		if v.Kind != String || utf8.RuneCount(v.Text) != 1 {
			return nil, false
		}
		escape, _ = utf8.DecodeRune(v.Text)
	}
	if pattern.Kind != String || !slots.spendMade(likePartSize*len(pattern.Text)) {
		return nil, false
	}
	return likeParts([]rune(string(pattern.Text)), escape, e.escape != nil), true
}

func (e likeExpr) evalRow(slots *Slots) Value {
	parts, ok := e.ready, e.known
	if !ok {
		parts, ok = e.patternParts(slots)
	}
	text := e.operand.evalRow(slots)
	if !ok || text.Kind != String {
		return undefined
	}
	return boolValue(likeMatches([]rune(string(text.Text)), parts, slots))
}

// likePartSize estimates the size of a likePart in bytes.
const likePartSize = 48

// A likePart matches one character. If any is set, it instead matches any number of characters.
type likePart struct {
	any    bool      // %
	single bool      // _
	not    bool      // [^…]
	ranges [][2]rune // first and last character of each range in brackets
}

func (p likePart) isMatch(r rune) bool {
	if p.single {
		return true
	}
	for _, span := range p.ranges {
		if span[0] <= r && r <= span[1] {
			return !p.not
		}
	}
	return p.not
}

func likeParts(pattern []rune, escape rune, escapes bool) []likePart {
	var parts []likePart
	for i := 0; i < len(pattern); i++ {
		r := pattern[i]
		switch {
		case escapes && r == escape && i+1 < len(pattern):
			i++
			parts = append(parts, literalPart(pattern[i]))
		case r == '%':
			if n := len(parts); n == 0 || !parts[n-1].any {
				parts = append(parts, likePart{any: true})
			}
		case r == '_':
			parts = append(parts, likePart{single: true})
		case r == '[':
			set, length := likeSet(pattern[i+1:])
			if length == 0 { // an unclosed bracket matches itself
				parts = append(parts, literalPart(r))
				continue
			}
			parts = append(parts, set)
			i += length
		default:
			parts = append(parts, literalPart(r))
		}
	}
	return parts
}

func literalPart(r rune) likePart { return likePart{ranges: [][2]rune{{r, r}}} }

// likeSet parses a set after its opening bracket. It returns the length including the closing bracket.
func likeSet(s []rune) (set likePart, length int) {
	i := 0
	if len(s) > 0 && s[0] == '^' {
		set.not, i = true, 1
	}
	for ; i < len(s); i++ {
		switch {
		case s[i] == ']' && len(set.ranges) > 0:
			return set, i + 1
		case i+2 < len(s) && s[i+1] == '-' && s[i+2] != ']':
			set.ranges = append(set.ranges, [2]rune{s[i], s[i+2]})
			i += 2
		default:
			set.ranges = append(set.ranges, [2]rune{s[i], s[i]})
		}
	}
	return likePart{}, 0
}

// likeMatches reports whether text matches the pattern parts. It backtracks only to the last %, so its time is at most
// the product of the lengths. It returns false if no steps are left.
func likeMatches(text []rune, parts []likePart, slots *Slots) bool {
	const perStep = 8 // comparisons
	t, p := 0, 0
	backText, backPart := 0, -1
	compared := 0
	for t < len(text) {
		compared++
		if p < len(parts) {
			compared += len(parts[p].ranges)
		}
		if compared >= checkEvery {
			if !slots.spendSteps(compared / perStep) {
				return false
			}
			compared = 0
		}
		switch {
		case p < len(parts) && parts[p].any:
			backText, backPart = t, p
			p++
		case p < len(parts) && parts[p].isMatch(text[t]):
			t++
			p++
		case backPart >= 0:
			backText++
			t, p = backText, backPart+1
		default:
			return false
		}
	}
	for p < len(parts) && parts[p].any {
		p++
	}
	return p == len(parts)
}
