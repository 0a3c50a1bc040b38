package domain

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Sequencer orders the events of one object: it is the text that a store gives to an event for
// that. The zero value is the null sequencer, of an event to which the store gave none.
type Sequencer struct {
	text  string
	order string // texts of one object compare as their orders do, byte by byte
}

// A SequencerForm says which rule compares a sequencer.
type SequencerForm int

// The forms of sequencers.
const (
	// HexSequencer is that of AWS: hexadecimal in any case. The shorter one is padded with zeros
	// on its right before two are compared.
	HexSequencer SequencerForm = iota + 1
	// OpaqueSequencer is that of Azure: any text, compared byte by byte. The longer one is the
	// later one, although Azure documents no order of different lengths: plain comparison
	// puts older ones of 32 characters behind newer ones of 48. See [Object.Doubt].
	OpaqueSequencer
)

// MaxSequencer is the limit for the characters of a sequencer.
const MaxSequencer = 64

// opaquePrefix begins the order of opaque sequencers. It is greater than any hexadecimal digit.
const opaquePrefix = "~"

// ParseSequencer accepts 1 to 64 characters: hexadecimal digits for HexSequencer, and for
// OpaqueSequencer any UTF-8. Any other text is an Invalid error.
func ParseSequencer(form SequencerForm, s string) (Sequencer, error) {
	if !utf8.ValidString(s) {
		return Sequencer{}, Errorf(Invalid, "sequencer: want UTF-8, got %q", Clip(s))
	}
	if n := utf8.RuneCountInString(s); n < 1 || n > MaxSequencer {
		return Sequencer{}, Errorf(Invalid, "sequencer: want 1 to %d characters, got %d", MaxSequencer, n)
	}
	if form == OpaqueSequencer {
		return Sequencer{s, fmt.Sprintf("%s%03d:%s", opaquePrefix, len(s), s)}, nil
	}
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f', 'A' <= c && c <= 'F':
		default:
			return Sequencer{}, Errorf(Invalid, "sequencer: want hexadecimal digits, got %q", s)
		}
	}
	// Without its last zeros, a text compares as with zeros up to any length. One of zeros alone keeps
	// one: it is above the null sequencer, behind which what happened before all native rows is placed.
	return Sequencer{s, cmp.Or(strings.TrimRight(strings.ToUpper(s), "0"), "0")}, nil
}

// String returns the text as it was parsed, and nothing for the null sequencer.
func (s Sequencer) String() string { return s.text }

// IsNull reports whether the store gave no sequencer.
func (s Sequencer) IsNull() bool { return s.text == "" }

// Form returns the form of s, and 0 for the null sequencer.
func (s Sequencer) Form() SequencerForm {
	switch {
	case s.IsNull():
		return 0
	case strings.HasPrefix(s.order, opaquePrefix):
		return OpaqueSequencer
	default:
		return HexSequencer
	}
}

// identity returns the text by which two events are the same one. The case of hexadecimal
// digits has no meaning. Padding has: E4 and E40 are at one place, and are two events.
func (s Sequencer) identity() string {
	if s.Form() == HexSequencer {
		return strings.ToUpper(s.text)
	}
	return s.text
}

// isDoubtfulBeside reports whether no store documents the order of s and t.
func (s Sequencer) isDoubtfulBeside(t Sequencer) bool {
	return s.Form() != t.Form() || s.Form() == OpaqueSequencer && len(s.text) != len(t.text)
}
