package eventjson

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withPayload returns the JSON body of a request with one event, which has the given payload.
func withPayload(payload string) string {
	return `[{` + fields + `,"weight":20000,"payload":` + payload + `}]`
}

func nested(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

func TestPayload_FaultsOfItsShapeAreNamedByPointer(t *testing.T) {
	digits := strings.Repeat("1", 401)
	for payload, want := range map[string]Fault{
		nested(65):                               {"/0/payload", strings.Repeat("/0", 64), "payload: want at most 64 levels of nesting", 0},
		`{"a":[1,{"b":` + digits + `}]}`:         {"/0/payload", "/a/1/b", "payload: want numbers of at most 400 characters, got 401", 0},
		`[-0.` + digits + `e+1]`:                 {"/0/payload", "/0", "payload: want numbers of at most 400 characters, got 407", 0},
		`{"a":{},"b":{"x":1,"y":2,"x":3}}`:       {"/0/payload", "/b/x", "payload: want each name once in an object", 0},
		`{"a":1,"\u0061":1}`:                     {"/0/payload", "/a", "payload: want each name once in an object", 0},
		`{"\ud83d\ude00\n":1,"😀\u000A":1}`:       {"/0/payload", "/😀\n", "payload: want each name once in an object", 0},
		`{"":1,"":2}`:                            {"/0/payload", "/", "payload: want each name once in an object", 0},
		`[0,"\uD800"]`:                           {"/0/payload", "/1", `payload: want both halves of a surrogate pair, got only \uD800`, 0},
		`"\ud83dx"`:                              {"/0/payload", "", `payload: want both halves of a surrogate pair, got only \ud83d`, 0},
		`"\ud83d\ud83d\ude00"`:                   {"/0/payload", "", `payload: want both halves of a surrogate pair, got only \ud83d`, 0},
		`"\\\ude00"`:                             {"/0/payload", "", `payload: want both halves of a surrogate pair, got only \ude00`, 0},
		`{"a~/":{"b":{"x":1},"\udBff\u0020":1}}`: {"/0/payload", "/a~0~1", `payload: want both halves of a surrogate pair, got only \udBff`, 0},
		`{"` + strings.Repeat("n", 300) + `":[[` + digits + `]]}`: {"/0/payload", "", "payload: want numbers of at most 400 characters, got 401", 0},
	} {
		got, err := Read(strings.NewReader(withPayload(payload)), defaultLimits)
		require.NoError(t, err, payload)
		require.Empty(t, got.Events, payload)
		require.Equal(t, []Fault{want}, got.Faults.List, payload)
	}
}

func TestPayload_AcceptsWhatIsWithinTheLimits(t *testing.T) {
	for _, payload := range []string{
		nested(64), `[` + strings.Repeat("1", 400) + `]`, `{"a":{"a":{"a":1}},"b":{"a":1},"A":1,"a ":1}`, `[{"a":1},{"a":1}]`,
		`"\ud83d\ude00\\ud800"`, `"\uD83D\uDE00 \uD7FF \uE000 😀"`, `"\\"`, `{"\\":1,"\"":2,"\\\"":3}`, `{"{":"[","[":"{"}`, `-1.5E+10`, `"` + strings.Repeat("1", 500) + `"`,
	} {
		got, err := Read(strings.NewReader(withPayload(payload)), defaultLimits)
		require.NoError(t, err, payload)
		require.Empty(t, got.Faults.List, payload)
		require.Len(t, got.Events, 1)
		require.Equal(t, payload, string(got.Events[0].Payload))
		decoder := json.NewDecoder(strings.NewReader(payload))
		decoder.UseNumber() // a float64 cannot represent a number with 400 digits
		var value any
		require.NoError(t, decoder.Decode(&value), payload)
	}
}

func TestPayload_LimitsOfItsShapeAreSettings(t *testing.T) {
	limits := Limits{Events: 10, Payload: megabyte, PayloadDepth: 2, PayloadNumber: 3}
	for payload, faults := range map[string]int{nested(2): 0, nested(3): 1, `{"a":[{}]}`: 1, `[123,-12]`: 0, `1234`: 1, `-123`: 1} {
		got, err := Parse([]byte(withPayload(payload)), limits)
		require.NoError(t, err)
		require.Equal(t, faults, got.Faults.Total, payload)
	}
}

// A payload contains many names. Checking it takes about as long as sorting the names; comparing
// all pairs would take minutes.
func TestPayload_ManyNamesCostNoMoreThanSorting(t *testing.T) {
	var payload strings.Builder
	payload.WriteString(`{"prefix":0`)
	for i := range 300_000 {
		fmt.Fprintf(&payload, `,"prefix%x":0`, i)
	}
	last := payload.String()
	got, err := Read(strings.NewReader(withPayload(last+`}`)), Limits{Events: 1, Payload: 100 * megabyte})
	require.NoError(t, err)
	require.Len(t, got.Events, 1)
	got, err = Read(strings.NewReader(withPayload(last+`,"prefix":1}`)), Limits{Events: 1, Payload: 100 * megabyte})
	require.NoError(t, err)
	require.Equal(t, "/prefix", got.Faults.List[0].Inside)
}

func TestCloudEvent_AttributesAreCheckedLikePayloads(t *testing.T) {
	const rest = `,"specversion":"1.0","id":"1","source":"s","data":[]}`
	for attributes, want := range map[string][]string{
		`{"type":"t\ud83d\ude00"`:                           nil,
		`{"type":"t\ud83d"`:                                 {"/type"},
		`{"type":"t","x":` + strings.Repeat("1", 400):       nil,
		`{"type":"t","x":` + strings.Repeat("1", 401):       {"/x"},
		`{"type":"t","subject":"\ude00","x":"\ud83d\ud83d"`: {"/subject", "/x"},
	} {
		got, err := ParseCloudEvent([]byte(attributes+rest), defaultLimits)
		require.NoError(t, err)
		require.Equal(t, want, pointers(got.Faults), attributes)
	}
}

// The checker and a slow check based on encoding/json agree about random JSON values with
// surrogates, escaped names, repeated names, long numbers and deep nesting.
func TestPayload_RefusesWhatAnotherReaderRefuses(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 64))
	limits := Limits{Events: 1, Payload: megabyte, PayloadDepth: 3, PayloadNumber: 4}
	accepted := 0
	for range 5_000 {
		payload := randomJSON(random, 4)
		got, err := Parse([]byte(withPayload(payload)), limits)
		require.NoError(t, err, payload)
		want := isWellShaped(payload, limits)
		require.Equal(t, want, got.Faults.Total == 0, "%s: %v", payload, got.Faults.List)
		if want {
			accepted++
			var value any
			require.NoError(t, json.Unmarshal([]byte(payload), &value), payload)
		}
	}
	require.Greater(t, accepted, 1_000)
	require.Less(t, accepted, 4_000)
}

func randomJSON(random *rand.Rand, depth int) string {
	text := func() string {
		pieces := []string{"a", "b", "A", `\u0061`, `\\`, `\"`, `\ud83d\ude00`, "😀", `\uD83D`, `\ude00`, "{", "]", ",", ":"}
		s := `"`
		for range random.IntN(3) {
			n := len(pieces)
			if random.IntN(20) > 0 {
				n = 3
			}
			s += pieces[random.IntN(n)]
		}
		return s + `"`
	}
	switch kind := random.IntN(6); {
	case kind < 2 && depth > 0:
		var members []string
		for range random.IntN(4) {
			members = append(members, text()+" : "+randomJSON(random, depth-1))
		}
		return "{" + strings.Join(members, ",") + "}"
	case kind < 3 && depth > 0:
		var elements []string
		for range random.IntN(4) {
			elements = append(elements, randomJSON(random, depth-1))
		}
		return "[ " + strings.Join(elements, " , ") + "]"
	case kind < 4:
		return text()
	}
	return []string{"true", "null", "0", "-1.5", "12e3", "1234", "12345", "-1e-1"}[random.IntN(8)]
}

// isWellShaped checks the same rules as a ShapeChecker, with the tokens of encoding/json.
func isWellShaped(text string, limits Limits) bool {
	if text == "null" {
		return true
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	names := []map[string]bool{} // names of each open object; nil for an array
	isName := []bool{}
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return true
		}
		if err != nil {
			panic(err)
		}
		top := len(names) - 1
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			names, isName = names[:top], isName[:top]
			continue
		}
		if s, ok := token.(string); ok && strings.ContainsRune(s, '�') {
			return false
		}
		if n, ok := token.(json.Number); ok && len(n) > limits.PayloadNumber {
			return false
		}
		if top >= 0 && names[top] != nil {
			isName[top] = !isName[top]
			if isName[top] {
				name := token.(string) //nolint:forcetypeassert // encoding/json has checked it
				if names[top][name] {
					return false
				}
				names[top][name] = true
				continue
			}
		}
		if delim, ok := token.(json.Delim); ok {
			if len(names) == limits.PayloadDepth {
				return false
			}
			var seen map[string]bool
			if delim == '{' {
				seen = map[string]bool{}
			}
			names, isName = append(names, seen), append(isName, false)
		}
	}
}
