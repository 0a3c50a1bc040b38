package domain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

var names = []parser{
	parserOf("actor id", domain.ParseActorID),
	parserOf("origin", domain.ParseOrigin),
	parserOf("group", domain.ParseGroup),
}

var labels = []parser{
	parserOf("content type", domain.ParseContentType),
	parserOf("document type", domain.ParseDocumentType),
}

func TestNames(t *testing.T) {
	for _, p := range names {
		for _, tc := range []struct{ name, text string }{
			{"a UUID is a name", "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41"},
			{"a GLN is a name", "5790001330552"},
			{"one character is enough", "x"},
			{"64 characters are not too many", strings.Repeat("x", 64)},
			{"the case is kept", "TimeSeries"},
			{"every character of the alphabet", "A-Z.a-z_0-9"},
			{"only punctuation", "..."},
		} {
			t.Run(p.what+"/"+tc.name, func(t *testing.T) {
				got, err := p.parse(tc.text)
				require.NoError(t, err)
				require.Equal(t, tc.text, got)
			})
		}
		for _, tc := range []struct{ name, text, refusal string }{
			{"no character is too few", "", "want 1 to 64 characters, got 0"},
			{"65 characters are too many", strings.Repeat("x", 65), "want 1 to 64 characters, got 65"},
			{"no blanks", "a b", `want only A-Z a-z 0-9 . _ -, got "a b"`},
			{"no slashes, which separate the parts of object names", "a/b", `want only A-Z a-z 0-9 . _ -, got "a/b"`},
			{"no letters beyond ASCII", "Målepunkt", `want only A-Z a-z 0-9 . _ -, got "Målepunkt"`},
			{"no bytes beyond ASCII", "a\xff", `want only A-Z a-z 0-9 . _ -, got "a\xff"`},
			{"no line breaks, which the error escapes", "a\n", `want only A-Z a-z 0-9 . _ -, got "a\n"`},
		} {
			t.Run(p.what+"/"+tc.name, func(t *testing.T) {
				got, err := p.parse(tc.text)
				requireInvalid(t, err, p.what+": "+tc.refusal)
				require.Empty(t, got)
			})
		}
	}
}

func TestNames_AcceptOnlyLettersDigitsDotUnderscoreAndDash(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	for _, p := range names {
		for c := range 256 {
			text := string([]byte{byte(c)})
			_, err := p.parse(text)
			assert.Equal(t, strings.Contains(alphabet, text), err == nil, "%s %q", p.what, text)
		}
	}
}

func TestLabels(t *testing.T) {
	for _, p := range labels {
		for _, tc := range []struct{ name, text string }{
			{"one character is enough", "x"},
			{"128 characters are not too many", strings.Repeat("x", 128)},
			{"blanks between words", "RSM 012 v 2"},
			{"quotes and backslashes", `say "\"`},
			{"the case is kept", "rsm012/Rsm012"},
		} {
			t.Run(p.what+"/"+tc.name, func(t *testing.T) {
				got, err := p.parse(tc.text)
				require.NoError(t, err)
				require.Equal(t, tc.text, got)
			})
		}
		for _, tc := range []struct{ name, text, refusal string }{
			{"no character is too few", "", "want 1 to 128 characters, got 0"},
			{"129 characters are too many", strings.Repeat("x", 129), "want 1 to 128 characters, got 129"},
			{"no commas, which separate the types in a header", "a,b", `want printable ASCII without commas, got "a,b"`},
			{"no line breaks, which end a header", "a\r\nb", `want printable ASCII without commas, got "a\r\nb"`},
			{"no letters beyond ASCII", "måling", `want printable ASCII without commas, got "måling"`},
			{"no leading blank", " a", `want no blank at either end, got " a"`},
			{"no trailing blank", "a ", `want no blank at either end, got "a "`},
			{"not only a blank", " ", `want no blank at either end, got " "`},
			{
				"a long text is cut short in the error", strings.Repeat("x", 64) + "y,",
				`want printable ASCII without commas, got "` + strings.Repeat("x", 64) + `…"`,
			},
		} {
			t.Run(p.what+"/"+tc.name, func(t *testing.T) {
				got, err := p.parse(tc.text)
				requireInvalid(t, err, p.what+": "+tc.refusal)
				require.Empty(t, got)
			})
		}
	}
}

func TestLabels_AcceptOnlyPrintableASCIIWithoutCommas(t *testing.T) {
	for _, p := range labels {
		for c := range 256 {
			text := string([]byte{'x', byte(c), 'x'})
			_, err := p.parse(text)
			assert.Equal(t, c >= ' ' && c <= '~' && c != ',', err == nil, "%s %q", p.what, text)
		}
	}
}

func TestIsZero_IsTrueOnlyForTheZeroActor(t *testing.T) {
	require.True(t, domain.ActorID{}.IsZero())
	require.False(t, actor("a").IsZero())
}

func TestLabels_AreCaseSensitive(t *testing.T) {
	require.Equal(t, contentType("Charges-v1"), contentType("Charges-v1"))
	require.NotEqual(t, contentType("Charges-v1"), contentType("charges-v1"))
}

func TestTheOriginsOfTheMarketAreValid(t *testing.T) {
	for _, o := range []domain.Origin{domain.Charges, domain.TimeSeries, domain.Aggregations, domain.MarketRoles, domain.MeteringPoints} {
		require.Equal(t, o, origin(o.String()))
	}
}
