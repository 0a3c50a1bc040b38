package filter

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// worstMetadata returns metadata of MaxMetadata bytes or MaxValues values. Each requires the most
// memory for some expressions.
func worstMetadata(t *testing.T) map[string]Metadata {
	all := make(map[string]Metadata)
	blanks := strings.Repeat("x", 4) // with quotes and a comma, about MaxMetadata/MaxValues bytes
	repeat := func(name, begin, each, end string) {
		n := (MaxMetadata - len(begin) - len(end)) / len(each)
		var one any
		if json.Unmarshal([]byte(strings.TrimSuffix(each, ",")), &one) == nil {
			n = min(n, (MaxValues-2-strings.Count(begin, "["))/countValues(one))
		}
		text := begin + strings.TrimSuffix(strings.Repeat(each, n), ",") + end
		m, err := ParseMetadata([]byte(text))
		require.NoError(t, err)
		all[name] = m
	}
	repeat("values of some length", "[", `"`+blanks+`",`, "]")
	repeat("pairs of some length", "[", `["`+blanks+`",1e20],`, "]")
	repeat("numbers", "[", "1,", "]")
	repeat("long numbers", "[", "1e20,", "]")
	repeat("empty lists", "[", "[],", "]")
	repeat("pairs", "[", "[1,2],", "]")
	repeat("empty strings", "[", `"",`, "]")
	repeat("strings", "[", `"<a>",`, "]")
	repeat("objects", "[", `{"a":1},`, "]")
	repeat("objects with lists", "[", `{"a":[{"b":1}],"b":"x"},`, "]")
	repeat("depth", strings.Repeat("[", 5000), "1,", strings.Repeat("]", 5000))
	repeat("a string", `{"a":"`, "<", `"}`)
	repeat("a list of numbers", `{"a":[`, "1,", "]}")
	repeat("a list of strings", `{"a":[`, `"x",`, "]}")
	repeat("a list of objects", `{"a":[`, `{"a":1,"b":"x"},`, "]}")
	var members strings.Builder
	members.WriteByte('{')
	for i := 0; members.Len() < MaxMetadata-20 && i < MaxValues-2; i++ {
		fmt.Fprintf(&members, "%q:%d,", fmt.Sprintf("%x", i), i%10)
	}
	members.WriteString(`"a":{}}`)
	m, err := ParseMetadata([]byte(members.String()))
	require.NoError(t, err)
	all["an object"] = m
	return all
}

// allocatedBytes returns the number of bytes that f allocates. If the result exceeds limit, it
// measures again, because other goroutines and the first call may allocate, too.
func allocatedBytes(limit float64, f func()) float64 {
	least := math.Inf(1)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if least = min(least, float64(after.TotalAlloc-before.TotalAlloc)); least <= limit {
			break
		}
	}
	return least
}

// checkBound reports whether an expression is accepted. It requires that an accepted expression
// allocates at most its bound and at most MaxMemory.
func checkBound(t *testing.T, text string, all map[string]Metadata) bool {
	t.Helper()
	e, err := Compile(text)
	if err != nil {
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		return false
	}
	b, err := boundOf(&e.node)
	require.NoError(t, err)
	for name, m := range all {
		used := allocatedBytes(b.maxMemory(), func() { _, _ = e.Search(m) })
		if used > b.maxMemory() || used > MaxMemory {
			t.Errorf("%s on %s: %.0f bytes, bound %.0f", text, name, used, b.maxMemory())
		}
		result, err := e.Search(m)
		if err == nil && float64(sizeOf(result)) > b.size.maxValue()*6 {
			t.Errorf("%s on %s: the result has %d bytes, bound %.0f", text, name, sizeOf(result), b.size.maxValue())
		}
	}
	return true
}

// attackExpressions were published as attacks on JMESPath, or multiply the size of values.
var attackExpressions = []string{
	strings.TrimSuffix(strings.Repeat("[@,@][]|", 20), "|"),
	strings.TrimSuffix(strings.Repeat("[@,@]|", 20), "|"),
	strings.TrimSuffix(strings.Repeat("{a:@,b:@}|", 20), "|"),
	strings.TrimSuffix(strings.Repeat("to_string([@,@])|", 12), "|"),
	strings.TrimSuffix(strings.Repeat("join('',[@,@])|", 20), "|"),
	"pad_left('a', `50000000`, ' ')", "pad_right('a', `1e9`)", "replace(a, '', a)", "split(a, '')", "zip(@,@,@,@)",
	"[*].[$]", "[*].[$,$][]", "$[].$[].$", "a[].[$.a][]", "map(&$, @)", "map(&[@,$], @)[]", "[?contains($, @)]",
	"join(to_string(@), [*].to_string(@))", "map(&to_string($), @)", "[*].join(to_string($), @)",
	"let $x = [@,@] in [$x,$x]", "[*].a" + strings.Repeat("a", 900), "[*].[length($)]", "[?$ == $]", "sort_by(@, &to_string($))",
	"max_by(@, &to_string([$,$]))", "*.*.*.*.[$]", "[*].abs(@)[]", "[*].[abs($)[]]",
	"merge(@,@,@,@,@,@,@,@)", "[*].{a:@,b:@,c:@,d:@}", "[*].{a:@}|[*].{a:@}|[*].{a:@}",
	strings.Repeat("@||", 300) + "@", strings.Repeat("!", 1000) + "a", strings.Repeat("(", 500) + "a" + strings.Repeat(")", 500),
	strings.Repeat("[", 500) + "@" + strings.Repeat("]", 500), strings.Repeat("[?", 300) + "a" + strings.Repeat("]", 300),
	"[" + strings.Repeat("@,", 500) + "@]", "[" + strings.Repeat("@[],", 200) + "@]", strings.Repeat("[]", 400), strings.Repeat("[*]", 300),
	strings.TrimSuffix(strings.Repeat("reverse(@)|", 80), "|"), strings.TrimSuffix(strings.Repeat("[:]|", 250), "|"),
}

// typicalExpressions are expressions that subscriptions use.
var typicalExpressions = []string{
	"type == 'made'", "type == 'made' && n > `5`", "starts_with(subject, 'a/') || contains(tags, 'x')", "a.b.c", "tags[0]",
	"length(tags) > `3`", "items[?price > `10`].name", "items[*].{name: name, price: price}", "items[].tags[]", "keys(@)", "values(@)",
	"sort_by(items, &price)[0].name", "max_by(items, &price)", "join(', ', tags)", "to_string(@)", "to_number(n) >= `3`", "!(type == 'a')",
	"[type, subject]", "{type: type, n: n}", "items[?type == 'a' && price > `1`] | [0]", "sum(items[*].price)", "map(&name, items)",
	"not_null(a, b, 'c')", "type(a) == 'string'", "@", "$", "*", "[*]", "[]", "a[1:3]", "avg(n)", "merge(a, b)", "a + b * `2`",
	"items[?starts_with(name, 'a') && contains(tags, 'x')]", "floor(n) == ceil(n)", "reverse(tags)", "min(n)", "max(n)", "ends_with(type, 'e')",
}

func TestTypicalExpressions_AreAccepted(t *testing.T) {
	all := worstMetadata(t)
	for _, text := range typicalExpressions {
		_, err := Compile(text)
		require.NoError(t, err, text)
		checkBound(t, text, all)
	}
}

func TestExpressionsWithoutABound_AreRefused(t *testing.T) {
	all := worstMetadata(t)
	for _, text := range attackExpressions {
		checkBound(t, text, all)
	}
	// The bounds of these expressions are infinite or not a number.
	for _, text := range []string{"[*].[$][]|", "map(&$,@)[]|", "[$,$][]|", "to_string(@)|"} {
		text = strings.Repeat(text, (domain.MaxExpression-10)/len(text)) + "`1`"
		_, err := Compile(text)
		require.Error(t, err, text)
	}
	for _, text := range attackExpressions[:18] {
		_, err := Compile(text)
		require.Error(t, err, text)
	}
}

func TestNoAcceptedExpression_AllocatesMoreThanItsBound(t *testing.T) {
	all := worstMetadata(t)
	n := 500
	if hasRaceDetector || testing.Short() {
		n = 100
	}
	g := &generator{rand.New(rand.NewPCG(1, 2))}
	accepted := 0
	for range n {
		if checkBound(t, g.newExpression(1+g.IntN(4)), all) {
			accepted++
		}
	}
	t.Logf("%d of %d accepted", accepted, n)
	require.Greater(t, accepted, n/4)
	require.Less(t, accepted, n)
}

// A generator returns random expressions.
type generator struct{ *rand.Rand }

func (g *generator) choose(texts ...string) string { return texts[g.IntN(len(texts))] }

func (g *generator) newLeaf() string {
	return g.choose("@", "$", "a", "b", "a.b", "`1`", "'x'", "`[1,[2]]`", "[*]", "[]", "*", "a[0]", "a[]", "a[*].b", "[:]", "[::-1]", "a[1:]")
}

func (g *generator) newExpression(depth int) string {
	if depth == 0 {
		return g.newLeaf()
	}
	e := func() string { return g.newExpression(depth - 1) }
	switch g.IntN(16) {
	case 0:
		return e() + g.choose(" | ", " || ", " && ", " == ", " != ", " < ", " + ") + e()
	case 1:
		return "[" + e() + ", " + e() + "]"
	case 2:
		return "{a: " + e() + ", b: " + e() + "}"
	case 3:
		return "[*].[" + e() + "]"
	case 4:
		return "[?" + e() + "]"
	case 5:
		return "(" + e() + ")[]"
	case 6:
		return "(" + e() + ")[?" + e() + "].[" + e() + "]"
	case 7:
		return "*.{a: " + e() + "}"
	case 8:
		return "map(&" + e() + ", " + e() + ")"
	case 9:
		return g.choose("sort_by", "max_by", "min_by") + "(" + e() + ", &" + e() + ")"
	case 10:
		return "join('" + g.choose("", ",", "<<<<") + "', " + e() + ")"
	case 11:
		return g.choose("contains", "starts_with", "ends_with", "merge", "not_null") + "(" + e() + ", " + e() + ")"
	case 12:
		return "!" + e()
	case 13:
		return "(" + e() + ")[*].[" + e() + "][]"
	default:
		return g.choose("to_string", "to_array", "keys", "values", "sort", "reverse", "length", "abs", "sum", "avg", "max", "type", "to_number") + "(" + e() + ")"
	}
}

func TestAnExpression_DoesNotChangeMetadata(t *testing.T) {
	const text = `{"a":[{"b":3},{"b":1},{"b":2}]}`
	m, err := ParseMetadata([]byte(text))
	require.NoError(t, err)
	for _, e := range []string{"sort_by(a, &b)", "reverse(a)", "a[] | sort_by(@, &b)", "max_by(a, &b)"} {
		compiled, err := Compile(e)
		require.NoError(t, err)
		_, err = compiled.Search(m)
		require.NoError(t, err)
		left, err := json.Marshal(m.value)
		require.NoError(t, err)
		require.JSONEq(t, text, string(left), e)
	}
}

func FuzzCompile(f *testing.F) {
	for _, text := range append(attackExpressions, typicalExpressions...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(text)
		if err != nil {
			return
		}
		m, err := ParseMetadata([]byte(`{"a":[1,"x",{"b":[2]}],"b":{"c":"d"}}`))
		require.NoError(t, err)
		_, _ = e.Matches(m)
	})
}

// The test nests and repeats any two tokens, up to the maximum length of an expression.
func TestCompile_AllocatesAtMostOneMegabyte(t *testing.T) {
	tokens := []string{
		"@", "a", "[", "]", "(", ")", "[*]", "[]", "[?", ".", "|", "||", "&&", "!", "&", "{a:", "}", ",", "`1`", "`[", "'a'", `"a"`,
		"==", "*", "$", "-", "//", "let $x=", " in ", "[:", "abs(", `"\u`, `\`, "0", "é", "\xff",
	}
	if hasRaceDetector {
		tokens = tokens[:12]
	}
	var most float64
	for _, a := range tokens {
		for _, b := range tokens {
			for _, text := range []string{
				strings.Repeat(a+b, domain.MaxExpression/len(a+b)),
				strings.Repeat(a, domain.MaxExpression/2/len(a)) + strings.Repeat(b, domain.MaxExpression/2/len(b)),
			} {
				used := allocatedBytes(MaxMemory/16, func() { _, _ = Compile(text) })
				if most = max(most, used); used > MaxMemory/16 {
					t.Errorf("%.0f MB for %.40q and so on", used/(1<<20), text)
				}
			}
		}
	}
	t.Logf("at most %.0f KB", most/(1<<10))
}
