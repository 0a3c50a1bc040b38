package query

import (
	"io"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

const (
	// maxProgram limits the instructions of a regular expression. The time of a match is proportional to the
	// instructions times the length of the text.
	maxProgram = 10_000

	// shortText is the maximum length of a text that is matched in one call. A longer text is read character by
	// character, so that the match can be interrupted.
	shortText = 4 << 10

	perRegex = 100 // steps for compiling a short regular expression
)

// A program is a compiled regular expression.
type program struct {
	*regexp.Regexp

	perRune int // steps per character of the text
}

// newProgram compiles a pattern. If it refuses the pattern, it returns the reason.
func newProgram(pattern string) (p *program, reason string) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, badRegex
	}
	n := countInstructions(tree)
	if n > maxProgram {
		return nil, wideRegex
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, badRegex
	}
	return &program{re, 1 + n/8}, ""
}

// countInstructions estimates the number of instructions of a pattern. It stops soon after maxProgram.
func countInstructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n = min(n+countInstructions(sub), maxProgram+1)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxProgram+1)
}

func (p *program) matchText(text []byte, slots *Slots) Value {
	if len(text) <= shortText {
		if !slots.spendSteps(1 + len(text)*p.perRune) {
			return undefined
		}
		return boolValue(p.Match(text))
	}
	found := p.MatchReader(&meteredRunes{text: text, slots: slots, steps: p.perRune})
	if slots.failure != nil {
		return undefined
	}
	return boolValue(found)
}

// meteredRunes reads a text until no steps are left.
type meteredRunes struct {
	text  []byte
	slots *Slots
	steps int
}

func (m *meteredRunes) ReadRune() (r rune, size int, err error) {
	if len(m.text) == 0 || !m.slots.spendSteps(m.steps) {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRune(m.text)
	m.text = m.text[size:]
	return r, size, nil
}
