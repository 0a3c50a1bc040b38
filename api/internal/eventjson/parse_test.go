package eventjson

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fields contains the fields of a valid event, without its weight.
const fields = `"id":"00000000-0000-4000-8000-000000000001","recipient":"a","origin":"b","contentType":"c","documentType":"d","supportsBundling":true`

// pointers returns the JSON pointers of all faults.
func pointers(f Faults) []string {
	var all []string
	for _, fault := range f.List {
		all = append(all, fault.Pointer)
	}
	return all
}

func TestAnEventMayBeAloneOrInAnArray(t *testing.T) {
	for _, text := range []string{`{` + fields + `,"weight":1}`, " \n{" + fields + `,"weight":1}` + "\t\r\n", `[{` + fields + `,"weight":1}]`, ` [ {` + fields + `,"weight":1} ] `} {
		got, err := Parse([]byte(text), defaultLimits)
		require.NoError(t, err, text)
		require.Empty(t, got.Faults.List)
		require.Len(t, got.Events, 1)
		require.Equal(t, 1, got.Count)
	}
	got, err := Parse([]byte("[]"), defaultLimits)
	require.NoError(t, err)
	require.Empty(t, got.Events)
}

func TestAPointerBeginsWhereTheTextDoes(t *testing.T) {
	for text, want := range map[string][]string{
		`{` + fields + `,"weight":0}`:                 {"/weight"},
		`[{` + fields + `,"weight":0}]`:               {"/0/weight"},
		`[{},{` + fields + `,"weight":0,"a~/b":1}]`:   {"/0/id", "/0/recipient", "/0/origin", "/0/contentType", "/0/documentType", "/0/supportsBundling", "/0/weight", "/1/weight", "/1/a~0~1b"},
		`[7,{` + fields + `,"weight":1},[],"x",null]`: {"/0", "/2", "/3", "/4"},
	} {
		got, err := Parse([]byte(text), defaultLimits)
		require.NoError(t, err)
		require.Equal(t, want, pointers(got.Faults), text)
	}
}

func TestLaterFaultsPointToTheEvent(t *testing.T) {
	for text, want := range map[string]Fault{
		`{` + fields + `,"weight":1}`:         {"/origin", "", "unknown", 0},
		`[{},7,{` + fields + `,"weight":1}]`:  {"/2/origin", "", "unknown", 2},
		` [{` + fields + `,"weight":1},null]`: {"/0/origin", "", "unknown", 0},
	} {
		got, err := Parse([]byte(text), defaultLimits)
		require.NoError(t, err)
		require.Len(t, got.Events, 1)
		require.Equal(t, want, got.Fault(0, "origin", "unknown"), text)
	}
	got, err := Parse([]byte(`{`+fields+`,"weight":1}`), defaultLimits)
	require.NoError(t, err)
	require.Equal(t, Fault{Pointer: "", Detail: "all of it"}, got.Fault(0, "", "all of it"))
}

func TestSyntaxError_HasThePositionOfTheByte(t *testing.T) {
	for text, want := range map[string]SyntaxError{
		``:                   {"", 0, "the body is empty; want an event or an array of events"},
		`  7`:                {"", 2, "want an event or an array of events"},
		`  {"a"}`:            {"", 6, "want : after the name of a field"},
		` {"a":1} x`:         {"", 8, "want nothing after the event"},
		`{"a":1`:             {"", 6, "want , or } after a field"},
		`[{"a":1},{"a"}]`:    {"/1", 13, "want : after the name of a field"},
		"[{\"a\":\"\xff\"}]": {"/0", 1, "want UTF-8 throughout the event"},
	} {
		got, err := Parse([]byte(text), defaultLimits)
		require.Equal(t, &want, err, "%q", text)
		require.NotNil(t, got)
	}
}

func TestRead_LimitsTheNumberOfEvents(t *testing.T) {
	limits := Limits{Events: 2, Payload: 10}
	read := func(text string, _ Limits) (*Events, error) { return Read(strings.NewReader(text), limits) }
	parse := func(text string, _ Limits) (*Events, error) { return Parse([]byte(text), limits) }
	for _, f := range []func(string, Limits) (*Events, error){read, parse} {
		got, err := f(`[{},{}]`, limits)
		require.NoError(t, err)
		require.Equal(t, 2, got.Count)
		_, err = f(`[{},{},{}]`, limits)
		many, ok := errors.AsType[*TooManyError](err)
		require.True(t, ok)
		require.EqualError(t, many, "more than 2 events")
	}
}
