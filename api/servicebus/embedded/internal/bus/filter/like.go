package filter

import "fmt"

// likeEvaluator returns the evaluator of LIKE. The result is unknown unless all operands are strings.
func likeEvaluator(left, pattern, escape evaluator) evaluator {
	if escape == nil {
		escape = constantValue("")
	}
	return func(m Message) (any, error) {
		var texts [3]string
		for i, n := range []evaluator{left, pattern, escape} {
			v, err := n(m)
			if err != nil {
				return nil, err
			}
			s, ok := v.(string)
			if !ok {
				return nil, nil
			}
			texts[i] = s
		}
		escapes := []rune(texts[2])
		if len(escapes) > 1 {
			return nil, fmt.Errorf("%w: ESCAPE needs one character, not %q", ErrEvaluate, texts[2])
		}
		return matchWildcards([]rune(texts[0]), parsePattern(texts[1], escapes)), nil
	}
}

const (
	anyText = -1 // %
	anyRune = -2 // _
)

func parsePattern(s string, escapes []rune) []rune {
	var pattern []rune
	escaped := false
	for _, r := range s {
		switch {
		case !escaped && len(escapes) == 1 && r == escapes[0]:
			escaped = true
			continue
		case !escaped && r == '%':
			r = anyText
		case !escaped && r == '_':
			r = anyRune
		}
		escaped = false
		pattern = append(pattern, r)
	}
	return pattern
}

// matchWildcards reports whether s matches a pattern. When it backtracks, it returns only to the last %, because
// everything before that % has matched as early as possible.
func matchWildcards(s, pattern []rune) bool {
	i, p := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == anyText:
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == anyRune || pattern[p] == s[i]):
			i++
			p++
		case star >= 0:
			mark++
			i, p = mark, star+1
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == anyText {
		p++
	}
	return p == len(pattern)
}
