package ledger

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// Wildcards match as in the original system (cases FM-94 and FM-95).
func TestPattern_MatchesWildcards(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		ignoreCase    bool
		want          bool
	}{
		{"te*", "test", false, true},
		{"te*", "atest", false, false},
		{"tes?-!)regex_%like", "test-!)regex_%like", false, true},
		{"test???regex??like", "test-!)regex_%like", false, true},
		{"test???regex??like", "test-!)regex_like", false, false},
		{"_", "a", false, false},
		{"%", "a", false, false},
		{"*a*", "value-a-b", false, true},
		{"*A*", "value-a-b", false, false},
		{"*A*", "value-a-b", true, true},
		{"É", "é", true, true},
		{"????????-????-????-????-????????????", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", false, true},
		{`!$()\*+.:<=>\?[\\]^{|}-`, `!$()*+.:<=>?[\]^{|}-`, false, true},
		{`\*`, "a", false, false},
		{"prefixover*", "prefixoverlapsuffix", false, true},
		{"*rlapsuffix", "prefixoverlapsuffix", false, true},
		{"a*b*c", "aXbXbXc", false, true},
		{"a*b*c", "acb", false, false},
		{"?", "日", false, true},
		{"", "", false, true},
		{"", "a", false, false},
		{"*", "", false, true},
		{"?", "", false, false},
	} {
		p, err := parsePattern(tc.pattern, tc.ignoreCase)
		require.NoError(t, err)
		require.Equal(t, tc.want, p.matches(tc.text), "%q and %q", tc.pattern, tc.text)
	}
	for _, text := range []string{`\a`, `a\`, `\\\`} {
		_, err := parsePattern(text, false)
		require.Equal(t, domain.Invalid, domain.KindOf(err), text)
		require.ErrorContains(t, err, "a backslash may only precede")
	}
}

// Each short pattern must match the same texts as an equivalent regular expression.
func TestPattern_MatchesLikeItsRegularExpression(t *testing.T) {
	var texts []string
	for length := range 5 {
		texts = append(texts, combinations("ab", length)...)
	}
	for length := range 6 {
		for _, text := range combinations("ab*?", length) {
			p, err := parsePattern(text, false)
			require.NoError(t, err)
			want := regexp.MustCompile("^" + strings.NewReplacer("*", ".*", "?", ".").Replace(text) + "$")
			for _, candidate := range texts {
				if want.MatchString(candidate) != p.matches(candidate) {
					require.Equal(t, want.MatchString(candidate), p.matches(candidate), "%q and %q", text, candidate)
				}
			}
		}
	}
}

// combinations returns all texts of the given length that consist of characters in alphabet.
func combinations(alphabet string, length int) []string {
	all := []string{""}
	for range length {
		var longer []string
		for _, text := range all {
			for _, c := range alphabet {
				longer = append(longer, text+string(c))
			}
		}
		all = longer
	}
	return all
}

// Matching takes at most a time proportional to the text's length times the pattern's length.
func TestPattern_WithManyStarsIsFast(t *testing.T) {
	p, err := parsePattern(strings.Repeat("a*", 1000)+"b", false)
	require.NoError(t, err)
	began := time.Now()
	for range 100 {
		require.False(t, p.matches(strings.Repeat("a", 1024)))
	}
	require.Less(t, time.Since(began), 20*time.Second)
	many, err := parsePattern(strings.Repeat("*", 1000), false)
	require.NoError(t, err)
	require.Len(t, many.parts, 1)
}

func TestPattern_HasAPlainPrefix(t *testing.T) {
	for _, tc := range []struct {
		pattern, prefix   string
		isPlain, isPrefix bool
	}{
		{"abc", "abc", true, false},
		{"ab*", "ab", false, true},
		{"ab*c", "ab", false, false},
		{"ab?", "ab", false, false},
		{"*", "", false, true},
		{`a\*b*`, "a*b", false, true},
	} {
		p, err := parsePattern(tc.pattern, false)
		require.NoError(t, err)
		prefix, isPlain := p.plainPrefix()
		require.Equal(t, tc.prefix, prefix)
		require.Equal(t, tc.isPlain, isPlain, tc.pattern)
		require.Equal(t, tc.isPrefix, p.isPrefix(), tc.pattern)
	}
}
