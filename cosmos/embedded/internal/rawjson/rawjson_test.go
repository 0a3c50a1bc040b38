package rawjson

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var samples = []string{
	`null`, `true`, `false`, `0`, `-0`, `12.50`, `1e400`, `-1E-2`, `01`, `1.`, `.5`, `+1`, `"a"`, `"\u00zz"`, `"\u12aF\ud83d"`, `"\x"`,
	`"a` + "\n" + `b"`, `"` + "\xff" + `"`, `"日本語 text longer than a word"`, `[]`, `[1,2,[3]]`, `[1,]`, `[,]`, `{}`, `{"a":1,"b":{"c":[true]}}`,
	`{"a":1,}`, `{"a"}`, `{1:2}`, ` { "a" : [ 1 , 2 ] } `, `{} {}`, `nul`, ``, ` `, `{"a\"b":"c\\"}`, `12345678901234567890`, `0.1234567890123456789`,
	`{"id":"x","data":"` + strings.Repeat("QUJD", 100) + `","slot":7}`, strings.Repeat("[", 128) + strings.Repeat("]", 128), strings.Repeat("[", 129),
}

// FuzzCompactAgreesWithTheStandardLibrary compares Compact with encoding/json. Both must accept the same texts with the
// same meaning, except texts that Cosmos DB refuses: broken UTF-8, deep nesting, and numbers beyond a double.
func FuzzCompactAgreesWithTheStandardLibrary(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := Compact(nil, src)
		if err != nil {
			refused := !json.Valid(src) || !validText(src) || Depth(src) > MaxDepth || strings.Contains(err.Error(), "double")
			require.True(t, refused, "%q: %v", src, err)
			return
		}
		require.True(t, json.Valid(src), "%q", src)
		require.True(t, json.Valid(got), "%q", got)
		var before, after any
		require.NoError(t, json.Unmarshal(src, &before))
		require.NoError(t, json.Unmarshal(got, &after))
		require.Equal(t, before, after)
		again, err := Compact(nil, got)
		require.NoError(t, err)
		require.Equal(t, string(got), string(again))
		require.Equal(t, len(got), Skip(got, 0))
	})
}

func validText(src []byte) bool { return bytes.Equal(bytes.ToValidUTF8(src, nil), src) }

// FuzzExtractAgreesWithTheStandardLibrary compares the values of some paths with the values that encoding/json decodes.
func FuzzExtractAgreesWithTheStandardLibrary(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s), "a", "b", 1)
	}
	f.Fuzz(func(t *testing.T, src []byte, a, b string, index int) {
		doc, err := Compact(nil, src)
		var decoded any
		if err != nil || json.Unmarshal(doc, &decoded) != nil || hasRepeatedName(doc) {
			return
		}
		paths := []Path{{}, {{Name: a}}, {{Name: a}, {Name: b}}, {{Name: b}, {Array: true, Index: index}}, {{Array: true, Index: index}, {Name: a}}, {{Name: "slot"}}}
		slots := make([][]byte, len(paths))
		NewExtractor(paths).Extract(doc, slots)
		for i, path := range paths {
			want, ok := followPath(decoded, path)
			require.Equal(t, ok, slots[i] != nil, "%s %v: %q", doc, path, slots[i])
			if ok {
				var got any
				require.NoError(t, json.Unmarshal(slots[i], &got))
				require.True(t, reflect.DeepEqual(want, got), "%s %v", doc, path)
			}
		}
	})
}

// hasRepeatedName reports whether an object contains a name twice. This package uses the first value, encoding/json the
// last.
func hasRepeatedName(b []byte) (found bool) {
	names := map[string]bool{}
	_ = EachMember(b, func(name, value []byte) bool {
		text, _ := Unquote(name)
		found = found || names[string(text)] || hasRepeatedName(value)
		names[string(text)] = true
		return !found
	})
	_ = EachElement(b, func(value []byte) bool { found = found || hasRepeatedName(value); return !found })
	return found
}

func followPath(v any, path Path) (any, bool) {
	for _, step := range path {
		var ok bool
		switch at := v.(type) {
		case map[string]any:
			if v, ok = at[step.Name]; !ok || step.Array {
				return nil, false
			}
		case []any:
			if !step.Array || step.Index < 0 || step.Index >= len(at) {
				return nil, false
			}
			v = at[step.Index]
		default:
			return nil, false
		}
	}
	return v, true
}

// FuzzReadingAnythingEnds passes unchecked text to all reading functions, which must not panic.
func FuzzReadingAnythingEnds(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s))
	}
	x := NewExtractor([]Path{{{Name: "a"}, {Name: "b"}}, {{Array: true, Index: 2}}, {}})
	f.Fuzz(func(_ *testing.T, src []byte) {
		_ = EachMember(src, func(name, value []byte) bool { return len(name)+len(value) > 0 })
		_ = EachElement(src, func([]byte) bool { return true })
		_ = Depth(src)
		_, _ = Unquote(src)
		for i := range min(len(src), 500) {
			_ = Skip(src, i)
		}
		x.Extract(src, make([][]byte, 3))
	})
}

func TestAppendNumber_WritesTheShortestText(t *testing.T) {
	for _, n := range []float64{0, -1, 1e14, 1e15, 1e21, 123.456, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, 1.0 / 3} {
		text := AppendNumber(nil, n)
		require.True(t, json.Valid(text), "%s", text)
		back, err := strconv.ParseFloat(string(text), 64)
		require.NoError(t, err)
		require.Equal(t, n, back)
	}
}

func TestSyntaxError_NamesThePosition(t *testing.T) {
	for text, at := range map[string]int{`{"a":x}`: 5, `[1,2`: 4, `{"a" 1}`: 5, `[1] 2`: 4, `"a\q"`: 2, `{"a":1 "b"}`: 7} {
		_, err := Compact(nil, []byte(text))
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, text)
		require.Equal(t, at, syntax.Offset, text)
	}
}

func TestAppendQuoted_KeepsAnyText(t *testing.T) {
	for _, s := range []string{"", "plain", `a"b\c`, "a\nb\x00c", "日本\u2028", "<&>", "\U0001F600"} {
		quoted := AppendQuoted(nil, s)
		back, ok := Unquote(quoted)
		require.True(t, ok)
		require.Equal(t, s, string(back))
	}
}

func BenchmarkCompact64KB(b *testing.B) {
	doc := []byte(`{"id":"x","slot":7,"data":"` + strings.Repeat("QUJD", 16<<10) + `"}`)
	dst := make([]byte, 0, len(doc))
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := Compact(dst, doc); err != nil {
			b.Fatal(err)
		}
	}
}
