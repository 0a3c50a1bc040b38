package filter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func parseMetadata(t *testing.T, text string) Metadata {
	t.Helper()
	m, err := ParseMetadata([]byte(text))
	require.NoError(t, err)
	return m
}

func TestAFilter_MatchesTrueResults(t *testing.T) {
	m := parseMetadata(t, `{"type":"made","n":5,"zero":0,"none":[],"tags":["a","b"],"o":{},"date":"2020-01-02"}`)
	for text, want := range map[string]bool{
		"type == 'made'": true, "type == 'other'": false, "n": true, "zero": false, "none": false, "o": false, "missing": false,
		"''": false, "`true`": true, "`null`": false, "tags": true, "n > `3` && date == '2020-01-02'": true, "contains(tags, 'b')": true,
		"contains(tags, `{}`)": false, "n + `1` == `6`": true, "zero || type": false,
	} {
		e, err := Compile(text)
		require.NoError(t, err, text)
		got, err := e.Matches(m)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestAFilterThatFails_MatchesNothing(t *testing.T) {
	m := parseMetadata(t, `{"type":"made"}`)
	for _, text := range []string{"abs(type)", "sum(type)", "length(missing)", "sort_by(@, &a)"} {
		e, err := Compile(text)
		require.NoError(t, err, text)
		got, err := e.Matches(m)
		require.Equal(t, domain.Invalid, domain.KindOf(err), text)
		require.False(t, got)
	}
}

func TestAnInvalidExpression_IsReportedWithItsPointer(t *testing.T) {
	for _, text := range []string{"[", "", "a b", "a[?", "{a:", "a[99999999999999999999]", "foo(a)", "upper(a)", "let $a = b in $a", "&a", "[&a]", "map(a, b)", "`{`"} {
		_, err := Compile(text)
		require.Equal(t, domain.Invalid, domain.KindOf(err), text)
	}
	s := domain.Subscription{Filter: "a["}
	_, _, err := CompileSubscription(&s)
	require.Equal(t, domain.Invalid, domain.KindOf(err))
	require.True(t, strings.HasPrefix(err.Error(), "/jmespath_query: "), err)
	s = domain.Subscription{Attachments: map[string]string{"a": "a", "b/c": "a["}}
	_, _, err = CompileSubscription(&s)
	require.True(t, strings.HasPrefix(err.Error(), "/attachments/b~1c/expression: "), err)
	s = domain.Subscription{Filter: "a", Attachments: map[string]string{"a": "a"}}
	filter, attachments, err := CompileSubscription(&s)
	require.NoError(t, err)
	require.NotNil(t, filter)
	require.Len(t, attachments, 1)
}

func TestParseMetadata_RefusesInvalidAndLargeTexts(t *testing.T) {
	for _, text := range []string{"", "{", "\"\xff\"", `"` + strings.Repeat("a", MaxMetadata) + `"`, "[" + strings.Repeat("1,", MaxValues) + "1]"} {
		_, err := ParseMetadata([]byte(text))
		require.Equal(t, domain.Invalid, domain.KindOf(err))
	}
}

func attachAll(t *testing.T, expressions map[string]string, m Metadata) map[string]any {
	t.Helper()
	_, a, err := CompileSubscription(&domain.Subscription{Attachments: expressions})
	require.NoError(t, err)
	var all map[string]any
	require.NoError(t, json.Unmarshal(a.Evaluate(m), &all))
	return all
}

func TestAttachments_AreValuesOfExpressions(t *testing.T) {
	m := parseMetadata(t, `{"type":"made","n":[1,2]}`)
	require.Equal(t, map[string]any{"a": "literal", "b": nil, "c": []any{1.0, 2.0}},
		attachAll(t, map[string]string{"a": "'literal'", "b": "missing.path", "c": "n"}, m))
	require.Nil(t, Attachments{}.Evaluate(m))
}

func TestAnAttachmentThatFails_IsLeftOutWithItsReason(t *testing.T) {
	all := attachAll(t, map[string]string{"good": "type", "bad": "abs(type)", "inf": "[`1` / `0`]", "nan": "{a: `0` / `0`}"}, parseMetadata(t, `{"type":"made"}`))
	require.Equal(t, "made", all["good"])
	require.Len(t, all, 2)
	reasons := all["_errors"].(map[string]any)
	require.Len(t, reasons, 3)
	require.Contains(t, reasons["bad"], "invalid type")
	require.Contains(t, reasons["inf"], "number")
}

// The attachments have exactly the maximum length, and one byte more.
func TestAttachmentsThatAreTooLarge_AreReplacedByAnError(t *testing.T) {
	text := strings.Repeat("<", 10_000) // 60,000 bytes of JSON, because < is encoded as \u003c
	const around = len(`{"a":"","b":"","c":""}`)
	for _, extra := range []int{0, 1} {
		m := parseMetadata(t, fmt.Sprintf(`{"x":%q,"y":%q}`, text, strings.Repeat("y", MaxAttached-around-120_000+extra)))
		_, a, err := CompileSubscription(&domain.Subscription{Attachments: map[string]string{"a": "x", "b": "x", "c": "y"}})
		require.NoError(t, err)
		got := a.Evaluate(m)
		if extra == 0 {
			require.Len(t, got, MaxAttached)
		} else {
			require.JSONEq(t, `{"_errors":"Attachments too large (131073 > 131072)"}`, string(got))
		}
	}
}

func TestLargeAttachmentsWithSharedParts_AreNotEncoded(t *testing.T) {
	m := parseMetadata(t, `{"x":"`+strings.Repeat("x", 60_000)+`"}`)
	_, a, err := CompileSubscription(&domain.Subscription{Attachments: map[string]string{"a": "[x,x,x,x,x,x,x,x,x,x,x,x]"}})
	require.NoError(t, err)
	require.Contains(t, string(a.Evaluate(m)), "Attachments too large")
}
