package filter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A testMessage is a message with application properties (user) and system properties.
type testMessage struct{ user, system map[string]any }

func (n testMessage) Property(name string) (any, bool)   { v, ok := n.user[name]; return v, ok }
func (n testMessage) System(name string) any             { return n.system[name] }
func (n testMessage) SetProperty(name string, value any) { n.user[name] = value }
func (n testMessage) RemoveProperty(name string)         { delete(n.user, name) }

func (n testMessage) SetSystem(name string, value any) error {
	if name == "MessageId" {
		return fmt.Errorf("no")
	}
	n.system[name] = value
	return nil
}

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func sampleMessage() testMessage {
	return testMessage{
		user: map[string]any{
			"n": int32(5), "f": 2.5, "s": "hello", "t": true, "nothing": nil, "u": uint64(1 << 63), "odd name": "x", "at": noon,
			"bytes": []byte{1}, "percent": "100%", "Straße": "ß", "quote": "it's", "strange": struct{}{}, "order": "last",
		},
		system: map[string]any{"Subject": "order-1", "MessageId": "m", "TimeToLive": time.Minute},
	}
}

var parameters = map[string]any{"@p": 5, "@from": noon, "@list": "hello"}

func TestCondition_IsTrueFalseOrUnknown(t *testing.T) {
	const yes, no, unknown = "true", "false", "unknown"
	for text, want := range map[string]string{
		"1=1": yes, "TRUE": yes, "false": no, "NULL": unknown, "t": yes, "s": unknown, "user.t": yes, "not t": no,
		"n = 5": yes, "n = 5.0": yes, "n <> 4": yes, "n != 5": no, "n >= 5 AND n <= 5": yes, "n < 5": no, "f > 2": yes, "5 = n": yes,
		"n = '5'": unknown, "s = 'hello'": yes, "s = 'Hello'": no, "s > 'a'": yes, "t = TRUE": yes, "t > FALSE": yes, "FALSE < t": yes,
		"u > 9223372036854775807": no, "u = 9223372036854775808": yes, "at = @from": yes, "at < @from": no, "bytes = bytes": yes,
		"strange = strange": unknown, "strange IS NULL": no,
		"missing = 1": unknown, "NOT missing = 1": unknown, "missing = 1 OR n = 5": yes, "missing = 1 AND n = 4": no, "missing = 1 AND n = 5": unknown,
		"n = 5 OR missing = 1": yes, "n = 4 AND missing = 1": no,
		"missing IS NULL": yes, "nothing IS NULL": yes, "n IS NULL": no, "n IS NOT NULL": yes, "NULL IS NULL": yes,
		"EXISTS(n)": yes, "exists (nothing)": yes, "EXISTS(missing)": no, "EXISTS(sys.Label)": yes, "EXISTS(sys.To)": no, "NOT EXISTS(user.missing)": yes,
		"n IN (1, 5)": yes, "n IN (1, 2)": no, "n NOT IN (1, 2)": yes, "missing IN (1)": unknown, "n IN (1, missing)": unknown, "n IN (missing, 5)": yes, "s IN ('a', @list)": yes,
		"s LIKE 'h%'": yes, "s LIKE '_ello'": yes, "s LIKE '%l_%o'": yes, "s LIKE 'H%'": no, "s NOT LIKE 'x%'": yes, "s LIKE '%'": yes, "s LIKE ''": no, "n LIKE '5'": unknown,
		`percent LIKE '%\%' ESCAPE '\'`: yes, `s LIKE '%\%' ESCAPE '\'`: no, "missing LIKE '%'": unknown, "s LIKE '%e%l%l%o%'": yes,
		"sys.Label = 'order-1'": yes, "SYS.label LIKE 'order-%'": yes, "sys.Subject = 'order-1'": yes, "sys.To = 'x'": unknown, "sys.TimeToLive = 60": yes,
		"n + 1 = 6": yes, "n - 1 * 2 = 3": yes, "(n - 1) * 2 = 8": yes, "n / 2 = 2": yes, "n % 2 = 1": yes, "f * 2 = 5": yes, "f / 0 > 1": yes, "f % 2 = 0.5": yes,
		"f - 0.5 = 2": yes, "f + n = 7.5": yes, "-n = -5": yes, "+n = 5": yes, "- - n = 5": yes, "s + '!' = 'hello!'": yes, "missing + 1 = 2": unknown,
		"0x10 = 16": yes, "1E2 = 100": yes, ".5 = 0.5": yes, "1.5e-1 = 0.15": yes, "010 = 10": yes, "99999999999999999999 > 1": yes,
		"[odd name] = 'x'": yes, `"odd name" = 'x'`: yes, "user.[odd name] = 'x'": yes, "property('odd name') = 'x'": yes, "p('n') = 5": yes, "[order] = 'last'": yes,
		"Straße = 'ß'": yes, "quote = 'it''s'": yes, "n = @p": yes, "NEWID() <> NEWID()": yes, "[missing]]x] IS NULL": yes,
		"n = 5 AND s = 'x' OR t": yes, "n = 4 AND (s = 'x' OR t)": no, "NOT n = 4 AND t": yes, "(n = 5) = TRUE": yes,
	} {
		c, err := ParseCondition(text, parameters)
		require.NoError(t, err, text)
		v, err := c.root(sampleMessage())
		require.NoError(t, err, text)
		got := unknown
		if b, ok := v.(bool); ok {
			got = fmt.Sprint(b)
		}
		require.Equal(t, want, got, text)
		match, err := c.Match(sampleMessage())
		require.NoError(t, err)
		require.Equal(t, want == yes, match, text)
	}
}

func TestParse_RefusesInvalidTexts(t *testing.T) {
	for _, text := range []string{
		"", " ", "n =", "= 5", "n = 5 AND", "n = 5)", "(n = 5", "n == 5", "n IS 5", "n NOT 5", "n IN 5", "n IN ()", "n IN (1", "n LIKE", "n LIKE 'a' ESCAPE",
		"'open", "[open", `"open`, "sys.Nothing = 1", "other.n = 1", "sys. = 1", "n.s = 1", "@unknown = 1", "@ = 1", "EXISTS n", "EXISTS(1)", "NEWID(1)", "property(n)",
		"n ? 5", "n = 5 n", "AND", "SET n = 5", "[] = 1", "n = 1E999", "a = b = c", "\xff", strings.Repeat("(", MaxLength+1),
	} {
		_, err := ParseCondition(text, parameters)
		require.ErrorIs(t, err, ErrSyntax, "%q", text)
	}
	for _, text := range []string{"", "n = 5", "SET", "SET n", "SET n =", "SET 5 = n", "REMOVE", "REMOVE 5", "SET n = 5 x", "SET sys.Nothing = 1", ";"} {
		_, err := ParseAction(text, parameters)
		require.ErrorIs(t, err, ErrSyntax, "%q", text)
	}
}

func TestEvaluate_FailsWithoutAValue(t *testing.T) {
	for _, text := range []string{"n / 0 = 1", "n % 0 = 1", "s * 2 = 1", "t + 1 = 2", "s LIKE 'a' ESCAPE 'ab'", "n IN (1, n / 0)", "n / 0 IN (1)", "t AND n / 0 = 1", "NOT n / 0 = 1", "n / 0 IS NULL", "1 = n / 0", "n / 0 LIKE 'a'"} {
		c, err := ParseCondition(text, nil)
		require.NoError(t, err, text)
		ok, err := c.Match(sampleMessage())
		require.ErrorIs(t, err, ErrEvaluate, text)
		require.False(t, ok, text)
	}
}

func TestParseError_NamesThePosition(t *testing.T) {
	_, err := ParseCondition("n = 5 AND\nsys.Colour = 'red'", nil)
	require.ErrorContains(t, err, "there is no property sys.Colour")
	_, err = ParseCondition("n = 5 5", nil)
	require.ErrorContains(t, err, "at byte 6: expected nothing more, found 5")
}

func TestAction_ChangesTheNamedProperties(t *testing.T) {
	m := sampleMessage()
	a, err := ParseAction("SET n = n + @p; SET sys.label = s + '-' + sys.Label, REMOVE user.t SET fresh = NULL; REMOVE sys.To;", parameters)
	require.NoError(t, err)
	require.NoError(t, a.Apply(m))
	require.Equal(t, int64(10), m.user["n"])
	require.Equal(t, "hello-order-1", m.system["Subject"])
	require.NotContains(t, m.user, "t")
	require.Contains(t, m.user, "fresh")
	require.Contains(t, m.system, "To")
	for _, text := range []string{"SET n = n / 0", "SET sys.MessageId = 'x'", "REMOVE sys.MessageId"} {
		a, err := ParseAction(text, nil)
		require.NoError(t, err)
		require.ErrorIs(t, a.Apply(m), ErrEvaluate, text)
	}
}

func TestEqual_ComparesNumbersByValue(t *testing.T) {
	for _, n := range []any{int(3), int8(3), int16(3), int32(3), int64(3), uint(3), uint8(3), uint16(3), uint32(3), uint64(3), float32(3), 3.0} {
		require.True(t, Equal(n, 3), "%T", n)
	}
	require.False(t, Equal("3", 3))
	require.False(t, Equal(nil, nil))
}

// FuzzParse checks that every text is either refused or can be evaluated, quickly and without a panic.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"n = 5 AND NOT s LIKE 'h%' ESCAPE '!'", "sys.Label IN ('a', @p) OR EXISTS([x y])", "((n))", "- - -n % 0 = 1.5E2", "SET n = 1; REMOVE sys.To", "property('a') IS NOT NULL",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCondition(text, parameters)
		if err != nil {
			require.ErrorIs(t, err, ErrSyntax)
		} else if ok, err := c.Match(sampleMessage()); err != nil {
			require.ErrorIs(t, err, ErrEvaluate)
			require.False(t, ok)
		}
		if a, err := ParseAction(text, parameters); err != nil {
			require.ErrorIs(t, err, ErrSyntax)
		} else if err := a.Apply(sampleMessage()); err != nil {
			require.ErrorIs(t, err, ErrEvaluate)
		}
	})
}
