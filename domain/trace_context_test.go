package domain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const aTraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTraceContext_ReadsBackWhatItWrites(t *testing.T) {
	for _, parent := range []string{aTraceParent, strings.TrimSuffix(aTraceParent, "1") + "0"} {
		c, err := ParseTraceContext(parent, "congo=t61rcWkgMzE, rojo=00f067aa0ba902b7")
		require.NoError(t, err)
		assert.Equal(t, parent, c.Parent())
		assert.Equal(t, "0af7651916cd43dd8448eb211c80319c", c.TraceID.String())
		assert.Equal(t, "b7ad6b7169203331", c.SpanID.String())
		assert.Equal(t, "congo=t61rcWkgMzE, rojo=00f067aa0ba902b7", c.State)
		id, err := ParseTraceID(c.TraceID.String())
		require.NoError(t, err)
		assert.Equal(t, c.TraceID, id)
	}
	assert.Empty(t, TraceContext{}.Parent())
}

func TestTraceContext_AcceptsLaterVersions(t *testing.T) {
	for _, parent := range []string{"01" + aTraceParent[2:], "01" + aTraceParent[2:] + "-what-comes-later"} {
		c, err := ParseTraceContext(parent, "")
		require.NoError(t, err, parent)
		assert.Equal(t, aTraceParent, c.Parent())
	}
}

func TestTraceContext_RefusesOtherText(t *testing.T) {
	for name, parent := range map[string]string{
		"nothing":                     "",
		"a trace of zeros":            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"a span of zeros":             "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"capital letters":             strings.ToUpper(aTraceParent),
		"version ff":                  "ff" + aTraceParent[2:],
		"no digits":                   strings.Replace(aTraceParent, "0a", "xy", 1),
		"a member too many":           aTraceParent + "-00",
		"two of them":                 aTraceParent + "," + aTraceParent,
		"other separators":            strings.ReplaceAll(aTraceParent, "-", "_"),
		"too short":                   aTraceParent[:54],
		"a megabyte":                  strings.Repeat("0", 1<<20),
		"a megabyte of trailing text": "01" + aTraceParent[2:] + strings.Repeat("0", 1<<20),
	} {
		_, err := ParseTraceContext(parent, "a=b")
		require.Error(t, err, name)
		assert.Equal(t, Invalid, KindOf(err), name)
		assert.Less(t, len(err.Error()), 300, name)
	}
	for _, id := range []string{"", "00000000000000000000000000000000", "0AF7651916CD43DD8448EB211C80319C", "0af7651916cd43dd8448eb211c80319"} {
		_, err := ParseTraceID(id)
		require.Error(t, err, id)
	}
}

func TestTraceContext_LeavesOutStateThatIsNotValid(t *testing.T) {
	for name, state := range map[string]string{
		"too long":         "a=" + strings.Repeat("b", 511),
		"too many members": strings.Repeat("a=b,", 32) + "a=b",
		"no value":         "a",
		"no key":           "=b",
		"line break":       "a=b\r\nX-Actor-Id: c",
		"not ASCII":        "a=ü",
	} {
		c, err := ParseTraceContext(aTraceParent, state)
		require.NoError(t, err, name)
		assert.Empty(t, c.State, name)
		assert.Equal(t, aTraceParent, c.Parent(), name)
	}
}

func TestTraceContext_IsReadBackFromAContext(t *testing.T) {
	c, err := ParseTraceContext(aTraceParent, "")
	require.NoError(t, err)
	assert.Equal(t, c, TraceContextOf(WithTraceContext(t.Context(), c)))
	assert.Zero(t, TraceContextOf(t.Context()))
	assert.Equal(t, t.Context(), WithTraceContext(t.Context(), TraceContext{}))
}

func FuzzParseTraceContext(f *testing.F) {
	f.Add(aTraceParent, "a=b")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c, err := ParseTraceContext(parent, state)
		if err != nil {
			assert.Zero(t, c)
			return
		}
		again, err := ParseTraceContext(c.Parent(), c.State)
		require.NoError(t, err)
		assert.Equal(t, c, again)
	})
}

func TestAddCause_AddsEachValidSpanOnceUpToTheLimit(t *testing.T) {
	var causes []TraceContext
	for _, parent := range []string{"", "nonsense", "00-00000000000000000000000000000000-b7ad6b7169203331-01", strings.Repeat("0", 1<<20), aTraceParent, aTraceParent} {
		causes = AddCause(causes, parent, "a=b")
	}
	require.Len(t, causes, 1)
	assert.Equal(t, aTraceParent, causes[0].Parent())
	assert.Equal(t, "a=b", causes[0].State)
	assert.Empty(t, AddCause(nil, aTraceParent, "a="+strings.Repeat("b", 600))[0].State, "one that is too long is left out")
	for i := range 2 * MaxCauses {
		causes = AddCause(causes, TraceContext{TraceID: TraceID{1}, SpanID: SpanID{byte(i + 1)}}.Parent(), "")
	}
	assert.Len(t, causes, MaxCauses)
}

func TestStored_IsReadBackUnlessItIsNotSampled(t *testing.T) {
	c, err := ParseTraceContext(aTraceParent, "a=b")
	require.NoError(t, err)
	data := c.AppendStored(nil)
	assert.Len(t, data, 24)
	assert.Equal(t, c.Stored(), ParseStored(data))
	assert.Empty(t, c.Stored().State)
	c.Sampled = false
	assert.Empty(t, c.AppendStored(nil))
	assert.Zero(t, c.Stored())
	for _, data := range [][]byte{nil, {1, 2, 3}, make([]byte, 24), make([]byte, 25)} {
		assert.Zero(t, ParseStored(data))
	}
}
