package ledger

import (
	"strings"
	"unicode"

	"github.com/messagehub/messagehub/domain"
)

// A pattern is a text with wildcards: * matches any number of characters, and ? matches one
// character. A pattern matches only whole texts. A backslash escapes *, ? and a backslash.
type pattern struct {
	parts      []rune // characters, and the wildcards anyText and anyCharacter
	ignoreCase bool
}

// The wildcards in a pattern.
const (
	anyText rune = -1 - iota
	anyCharacter
)

// parsePattern parses a pattern. It fails with Invalid if a backslash precedes any other character
// than *, ? and a backslash.
func parsePattern(text string, ignoreCase bool) (pattern, error) {
	p := pattern{ignoreCase: ignoreCase}
	isEscaped := false
	for _, c := range text {
		switch {
		case isEscaped:
			if !strings.ContainsRune(`*?\`, c) {
				return pattern{}, domain.Errorf(domain.Invalid, `a backslash may only precede *, ? or another backslash, got one before %q`, c)
			}
			isEscaped = false
			p.addCharacter(c)
		case c == '\\':
			isEscaped = true
		case c == '*':
			if n := len(p.parts); n == 0 || p.parts[n-1] != anyText {
				p.parts = append(p.parts, anyText)
			}
		case c == '?':
			p.parts = append(p.parts, anyCharacter)
		default:
			p.addCharacter(c)
		}
	}
	if isEscaped {
		return pattern{}, domain.Errorf(domain.Invalid, `a backslash may only precede *, ? or another backslash, got one at the end`)
	}
	return p, nil
}

// plainPattern returns a pattern without wildcards, which matches only the given text.
func plainPattern(text string, ignoreCase bool) pattern {
	p := pattern{ignoreCase: ignoreCase}
	for _, c := range text {
		p.addCharacter(c)
	}
	return p
}

func (p *pattern) addCharacter(c rune) {
	if p.ignoreCase {
		c = foldCase(c)
	}
	p.parts = append(p.parts, c)
}

func foldCase(c rune) rune { return unicode.ToLower(unicode.ToUpper(c)) }

// matches reports whether the pattern matches the whole text. It backtracks only to the last *, so
// its time is at most proportional to the product of the two lengths.
func (p *pattern) matches(text string) bool {
	characters := []rune(text)
	part, at := 0, 0
	star, starAt := -1, 0 // index of the last *, and position in text up to which it matches
	for at < len(characters) {
		switch {
		case part < len(p.parts) && p.parts[part] == anyText:
			star, starAt = part, at
			part++
		case part < len(p.parts) && p.hasAt(part, characters[at]):
			part++
			at++
		case star >= 0:
			starAt++
			part, at = star+1, starAt
		default:
			return false
		}
	}
	if part < len(p.parts) && p.parts[part] == anyText {
		part++
	}
	return part == len(p.parts)
}

func (p *pattern) hasAt(part int, c rune) bool {
	if p.ignoreCase {
		c = foldCase(c)
	}
	return p.parts[part] == anyCharacter || p.parts[part] == c
}

// plainPrefix returns the text before the first wildcard. isPlain reports whether the pattern has
// no wildcard.
func (p *pattern) plainPrefix() (prefix string, isPlain bool) {
	for i, c := range p.parts {
		if c < 0 {
			return string(p.parts[:i]), false
		}
	}
	return string(p.parts), true
}

// isPrefix reports whether the pattern is a plain text followed by *, which matches all texts that
// begin with that text.
func (p *pattern) isPrefix() bool {
	prefix, isPlain := p.plainPrefix()
	return !isPlain && len([]rune(prefix)) == len(p.parts)-1 && p.parts[len(p.parts)-1] == anyText
}
