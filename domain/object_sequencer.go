package domain

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Sequencer is a text with which a store orders the events of one object. The zero value is the
// null sequencer, which means that the event has no sequencer.
type Sequencer struct {
	text  string
	order string // text that is compared byte by byte with those of other sequencers of the object
}

// A SequencerForm determines how sequencers are compared.
type SequencerForm int

// The forms of sequencers.
const (
	// HexSequencer is the form of AWS: hexadecimal digits in upper or lower case. Before a
	// comparison, the shorter of two sequencers is padded with zeros on the right.
	HexSequencer SequencerForm = iota + 1
	// OpaqueSequencer is the form of Azure: any text, compared byte by byte. A longer text counts
	// as later, because a plain comparison would put old texts of 32 characters behind new texts of
	// 48. Azure documents no order of texts with different lengths; see [Object.Doubt].
	OpaqueSequencer
)

// MaxSequencer is the maximum number of characters in a sequencer.
const MaxSequencer = 64

// opaquePrefix is the start of Sequencer.order for opaque sequencers. It sorts after any
// hexadecimal digit.
const opaquePrefix = "~"

// ParseSequencer accepts 1 to 64 characters: hexadecimal digits for HexSequencer, and for
// OpaqueSequencer any UTF-8. Any other text is an Invalid error.
func ParseSequencer(form SequencerForm, s string) (Sequencer, error) {
	if !utf8.ValidString(s) {
		return Sequencer{}, Errorf(Invalid, "sequencer: want UTF-8, got %q", Shorten(s))
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
	// Trailing zeros are removed: a shorter text then compares as if it were padded with zeros. A
	// text of only zeros is stored as one zero, so it sorts after the null sequencer, which is the
	// base of rows before all native rows.
	return Sequencer{s, cmp.Or(strings.TrimRight(strings.ToUpper(s), "0"), "0")}, nil
}

// String returns the text as it was parsed, or "" for the null sequencer.
func (s Sequencer) String() string { return s.text }

// IsNull reports whether s is the null sequencer.
func (s Sequencer) IsNull() bool { return s.text == "" }

// Form returns the form of s, or 0 for the null sequencer.
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

// identity returns the part of s that identifies an event. The case of hexadecimal digits does not
// matter, but trailing zeros do: E4 and E40 have the same place, but identify two events.
func (s Sequencer) identity() string {
	if s.Form() == HexSequencer {
		return strings.ToUpper(s.text)
	}
	return s.text
}

// isDoubtfulBeside reports whether no store documents how s and t are ordered.
func (s Sequencer) isDoubtfulBeside(t Sequencer) bool {
	return s.Form() != t.Form() || s.Form() == OpaqueSequencer && len(s.text) != len(t.text)
}
