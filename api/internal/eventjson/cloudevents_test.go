package eventjson

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// cloudEventWith returns a CloudEvent with data and the required attributes. more contains further
// members.
func cloudEventWith(data string, more ...string) string {
	all := append([]string{`"specversion":"1.0"`, `"id":"00000000-0000-4000-8000-00000000000c"`, `"source":"/meters"`, `"type":"DataAvailable"`, `"data":` + data}, more...)
	return "{" + strings.Join(all, ",") + "}"
}

const (
	sound = `{` + fields + `,"weight":1}`
	lean  = `{"origin":"b","contentType":"c","documentType":"d","supportsBundling":true,"weight":1}`
)

func TestCloudEvent_SuppliesMissingFieldsOfItsEvent(t *testing.T) {
	got, err := ParseCloudEvent([]byte(cloudEventWith(lean, `"subject":"5790001330552"`)), defaultLimits)
	require.NoError(t, err)
	require.Empty(t, got.Faults.List)
	require.Equal(t, "00000000-0000-4000-8000-00000000000c", got.Events[0].ID.String())
	require.Equal(t, "5790001330552", got.Events[0].Recipient.String())

	got, err = ParseCloudEvent([]byte(cloudEventWith(sound, `"subject":"somebody"`)), defaultLimits)
	require.NoError(t, err)
	require.Equal(t, "00000000-0000-4000-8000-000000000001", got.Events[0].ID.String(), "what it says itself counts")
	require.Equal(t, "a", got.Events[0].Recipient.String())
}

func TestCloudEvent_EventsInAnArrayNeedIDs(t *testing.T) {
	got, err := ParseCloudEvent([]byte(cloudEventWith(`[`+lean+`]`, `"subject":"a"`)), defaultLimits)
	require.NoError(t, err)
	require.Equal(t, []Fault{{Pointer: "/data/0/id", Detail: "id: missing"}}, got.Faults.List)
}

func TestFaultsOfACloudEventAreNamedByPointer(t *testing.T) {
	without := func(attribute string) string {
		var all map[string]json.RawMessage
		if json.Unmarshal([]byte(cloudEventWith(sound)), &all) != nil {
			panic("no JSON")
		}
		delete(all, attribute)
		text, _ := json.Marshal(all)
		return string(text)
	}
	with := func(attribute, value string) string {
		return strings.TrimSuffix(without(attribute), "}") + `,"` + attribute + `":` + value + "}"
	}
	for text, want := range map[string]string{
		`[]`:                            ": want a CloudEvent, an object, got an array",
		`7`:                             ": want a CloudEvent, an object, got a number",
		without("specversion"):          "/specversion: specversion: missing",
		without("id"):                   "/id: id: missing",
		without("source"):               "/source: source: missing",
		without("type"):                 "/type: type: missing",
		without("data"):                 "/data: data: missing",
		with("specversion", `"0.3"`):    "/specversion: specversion: want 1.0, got 0.3",
		with("specversion", `1.0`):      "/specversion: specversion: want a string, got a number",
		with("id", `""`):                "/id: id: want a string that is not blank",
		with("id", `null`):              "/id: id: want a string, got null",
		with("source", `" "`):           "/source: source: want a string that is not blank",
		with("source", `"http://[::1"`): "/source: source: want a URI reference, got http://[::1",
		with("type", `["x"]`):           "/type: type: want a string, got an array",
		with("time", `"yesterday"`):     "/time: time: want a time such as 2026-03-01T12:00:00Z, got yesterday",
		with("subject", `""`):           "/subject: subject: want a string that is not blank",
		with("dataschema", `"schema"`):  "/dataschema: dataschema: want an absolute URI, got schema",
		with("datacontenttype", `"application/xml"`):             "/datacontenttype: datacontenttype: want application/json, since data is an event in JSON, got application/xml",
		with("data", `"text"`):                                   "/data: data: want an event or an array of events, got a string",
		with("data", `null`):                                     "/data: data: want an event or an array of events, got null",
		with("data", `{`+fields+`,"weight":0}`):                  "/data/weight: weight: want at least 1 (KB), got 0",
		with("data", `[`+sound+`,7]`):                            "/data/1: want an object, got a number",
		with("data_base64", `"AAAA"`):                            "/data_base64: data_base64: want the event as JSON in data instead",
		with("traceParent", `"x"`):                               "/traceParent: unknown attribute; the name of an extension has only a-z and 0-9",
		with("", `"x"`):                                          ": unknown attribute; the name of an extension has only a-z and 0-9",
		with("extension", `{}`):                                  "/extension: extension: want a string, a number, true or false, got an object",
		strings.Replace(with("id", `"x"`), `{`, `{"id":"y",`, 1): "/id: id: appears more than once",
		cloudEventWith(lean):                                     "/data/recipient: recipient: missing",
		cloudEventWith(lean, `"subject":"a b"`):                  `/subject: actor id: want only A-Z a-z 0-9 . _ -, got "a b"`,
		strings.Replace(cloudEventWith(lean, `"subject":"a"`), "-00000000000c", "", 1): `/id: event id: want a UUID such as 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41, got "00000000-0000-4000-8000"`,
	} {
		got, err := ParseCloudEvent([]byte(text), defaultLimits)
		require.NoError(t, err, text)
		require.Len(t, got.Faults.List, 1, "%s: %v", text, got.Faults.List)
		require.Equal(t, want, got.Faults.List[0].Pointer+": "+got.Faults.List[0].Detail, text)

		batch, err := ParseCloudEvents([]byte(` [ `+cloudEventWith(`[`+sound+`,`+sound+`]`)+`, `+text+` ] `), defaultLimits)
		require.NoError(t, err, text)
		require.Equal(t, "/1"+want, batch.Faults.List[0].Pointer+": "+batch.Faults.List[0].Detail, text)
		require.GreaterOrEqual(t, batch.Faults.List[0].Index, 2)
	}
}

func TestLaterFaultsPointToTheEventInABatch(t *testing.T) {
	got, err := ParseCloudEvents([]byte(`[`+cloudEventWith(`[]`)+`,`+cloudEventWith(`[{},`+sound+`]`)+`,`+cloudEventWith(sound)+`,`+cloudEventWith(`[]`)+`,`+cloudEventWith(`[`+sound+`]`)+`]`), defaultLimits)
	require.NoError(t, err)
	require.Len(t, got.Events, 3)
	require.Equal(t, Fault{Pointer: "/1/data/1/origin", Detail: "unknown", Index: 1}, got.Fault(0, "origin", "unknown"))
	require.Equal(t, Fault{Pointer: "/2/data/origin", Detail: "unknown", Index: 2}, got.Fault(1, "origin", "unknown"))
	require.Equal(t, Fault{Pointer: "/4/data/0/origin", Detail: "unknown", Index: 3}, got.Fault(2, "origin", "unknown"))
}

func TestCloudEvent_ThatIsNotJSONIsRefusedAsAWhole(t *testing.T) {
	for text, want := range map[string]SyntaxError{
		``:                        {"", 0, "unexpected end of JSON input"},
		` x`:                      {"", 1, "invalid character 'x' looking for beginning of value"},
		` {"id"}`:                 {"", 6, "want : after the name of a field"},
		`{"id":x}`:                {"", 6, "invalid character 'x' looking for beginning of value"},
		`{"id":"a` + "\t" + `"}`:  {"", 8, `invalid character '\t' in string literal`},
		`{"data":x}`:              {"", 8, "invalid character 'x' looking for beginning of value"},
		`{"data":{"id":x}}`:       {"/data", 14, "invalid character 'x' looking for beginning of value"},
		` {"data": [{}, {"id"}]}`: {"/data/1", 20, "want : after the name of a field"},
		`{"data":[{} {}]}`:        {"", 12, "want , or ] after an event"},
		"{\"id\":\"\xff\"}":       {"", 0, "want UTF-8 throughout the CloudEvent"},
		`{"id":"a"} {"id":"b"}`:   {"", 10, "want nothing after the event"},
	} {
		_, err := ParseCloudEvent([]byte(text), defaultLimits)
		require.Equal(t, &want, err, "%q", text)
	}
	for text, want := range map[string]SyntaxError{
		``:                          {"", 0, "the body is empty; want an array of CloudEvents"},
		`{}`:                        {"", 0, "want an array of CloudEvents, got an object; put a single event into [ ]"},
		`[{},{"data":[{},{"id"}]}]`: {"/1/data/1", 21, "want : after the name of a field"},
		`[{},{"data":x}]`:           {"/1", 12, "invalid character 'x' looking for beginning of value"},
		`[{}`:                       {"", 3, "the text ends inside the array"},
	} {
		_, err := ParseCloudEvents([]byte(text), defaultLimits)
		require.Equal(t, &want, err, "%q", text)
	}
}

func TestCloudEvent_MayHaveExtraMembers(t *testing.T) {
	got, err := ParseCloudEvent([]byte(cloudEventWith(sound, `"time":"2026-03-01t12:00:00.123+01:00"`, `"subject":null`, `"dataschema":"https://example.org/event"`,
		`"datacontenttype":"application/vnd.event+json; charset=utf-8"`, `"traceparent":"00-x"`, `"priority":7`, `"draft":false`, `"nothing":null`)), defaultLimits)
	require.NoError(t, err)
	require.Empty(t, got.Faults.List)
	require.Len(t, got.Events, 1)
}

// The hub decodes CloudEvents that the CloudEvents SDK has encoded.
func TestCloudEvents_OfTheSDKAreRead(t *testing.T) {
	var written []cloudevents.Event
	for _, data := range []any{json.RawMessage(sound), json.RawMessage(`[` + sound + `]`), map[string]any{"id": "00000000-0000-4000-8000-000000000001", "recipient": "a", "origin": "b", "contentType": "c", "documentType": "d", "supportsBundling": true, "weight": 1}} {
		e := cloudevents.New()
		e.SetID("1")
		e.SetSource("urn:meters:æ")
		e.SetType("org.example.available")
		e.SetSubject("a/b c")
		e.SetExtension("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		e.SetExtension("number", 7)
		require.NoError(t, e.SetData(cloudevents.ApplicationJSON, data))
		written = append(written, e)
	}
	want, err := Parse([]byte(sound), defaultLimits)
	require.NoError(t, err)
	for _, e := range written {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		got, err := ParseCloudEvent(text, defaultLimits)
		require.NoError(t, err)
		require.Empty(t, got.Faults.List)
		require.Equal(t, want.Events, got.Events)
	}
	text, err := json.Marshal(written)
	require.NoError(t, err)
	got, err := ParseCloudEvents(text, defaultLimits)
	require.NoError(t, err)
	require.Empty(t, got.Faults.List)
	require.Len(t, got.Events, 3)
}

// If the data of a CloudEvent is a JSON event, the hub and the SDK accept the same CloudEvents. The
// test omits intended differences: the SDK also accepts version 0.3, bytes, other media types,
// upper case in names of extensions, and empty attributes, which it treats as missing.
func TestCloudEvents_AreAcceptedIfTheSDKAcceptsThem(t *testing.T) {
	attributes := map[string]struct{ usual, odd []string }{ // the empty string means that the attribute is missing
		"specversion":     {[]string{`"1.0"`}, []string{``, `"2.0"`, `""`, `null`, `1`}},
		"id":              {[]string{`"1"`, `"\u00e5"`}, []string{``, `""`, `" "`, `7`, `null`, `{}`}},
		"source":          {[]string{`"/meters"`, `"urn:a:b"`, `"https://example.org/a?b=c#d"`}, []string{``, `""`, `"http://[::1"`, `"%zz"`, `true`, `null`}},
		"type":            {[]string{`"t"`, `"org.example"`}, []string{``, `" "`, `[]`, `null`}},
		"subject":         {[]string{``, `"s"`, `null`}, []string{`" "`, `7`}},
		"time":            {[]string{``, `"2026-03-01T12:00:00Z"`, `"2026-03-01T12:00:00.5+02:00"`}, []string{`"2026-03-01"`, `7`}},
		"dataschema":      {[]string{``, `"https://example.org/s"`}, []string{`"/relative"`}},
		"datacontenttype": {[]string{``, `"application/json"`, `"text/json"`}, []string{`7`}},
		"extension":       {[]string{``, `"x"`, `7`, `true`, `null`}, []string{`{}`, `[1]`}},
		"bad_name":        {[]string{``}, []string{`"x"`}},
		"data":            {[]string{sound}, []string{sound}},
	}
	names := slices.Sorted(maps.Keys(attributes))
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "odd")
		var members []string
		for _, name := range rapid.Permutation(names).Draw(t, "order") {
			from := attributes[name].usual
			if slices.Contains(odd, name) {
				from = attributes[name].odd
			}
			if value := rapid.SampledFrom(from).Draw(t, name); value != "" {
				members = append(members, `"`+name+`":`+value)
			}
		}
		text := []byte("{" + strings.Join(members, ",") + "}")
		var theirs cloudevents.Event
		err := json.Unmarshal(text, &theirs)
		if err == nil {
			err = theirs.Validate()
		}
		ours, failed := ParseCloudEvent(text, defaultLimits)
		require.NoError(t, failed)
		require.Equal(t, err == nil, ours.Faults.Total == 0, "%s\nthey say %v, we say %v", text, err, ours.Faults.List)
		if err == nil {
			taken++
			data, err := Parse(theirs.Data(), defaultLimits)
			require.NoError(t, err)
			require.Equal(t, data.Events, ours.Events)
		}
	})
	require.Positive(t, taken)
}

// FuzzParse decodes arbitrary texts in each format. Decoding must not panic. An accepted object
// must be JSON, and an array must result in the same events whether it is in memory or streamed.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		sound, `[` + sound + `]`, cloudEventWith(sound), `[` + cloudEventWith(`[`+sound+`,`+lean+`]`, `"subject":"a"`) + `]`,
		cloudEventWith(lean, `"subject":"a"`, `"x":null`), `{"data":{}}`, ` {"data_base64":"AA=="} `, `[{"data":[{}],"data":7}]`, `{"specversion":"1.0`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, parse := range []func([]byte, Limits) (*Events, error){Parse, ParseCloudEvent, ParseCloudEvents} {
			got, err := parse(text, defaultLimits)
			require.LessOrEqual(t, len(got.Faults.List), min(got.Faults.Total, MaxFaults))
			if err == nil {
				require.True(t, json.Valid(text), "taken, but no JSON: %q", text)
			}
			for i := range got.Events {
				require.NoError(t, got.Events[i].Check())
				require.NotEmpty(t, got.Fault(i, "id", "").Pointer)
			}
		}
		streamed, err := Read(strings.NewReader(string(text)), defaultLimits)
		if whole, wrong := Parse(text, defaultLimits); err == nil {
			require.NoError(t, wrong)
			require.Equal(t, streamed.Events, whole.Events)
			require.Equal(t, streamed.Faults, whole.Faults)
		}
	})
}

func TestCloudEvents_NameTheSpansThatCausedThem(t *testing.T) {
	const first, second = `"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `"traceparent":"00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203332-00"`
	batch := []string{
		cloudEventWith(sound, first, `"tracestate":"a=b"`), cloudEventWith(sound), cloudEventWith(sound, `"tracestate":"c=d"`, first), cloudEventWith(sound, second),
		cloudEventWith(sound, `"traceparent":"00-00000000000000000000000000000000-0000000000000000-01"`), cloudEventWith(sound, `"traceparent":7`), cloudEventWith(sound, `"traceparent":null`),
		cloudEventWith(sound, `"traceparent":"`+strings.Repeat("0", 1<<20)+`"`), cloudEventWith(sound, second, `"tracestate":"a=`+strings.Repeat("b", 600)+`"`),
	}
	got, err := ParseCloudEvents([]byte("["+strings.Join(batch, ",")+"]"), defaultLimits)
	require.NoError(t, err)
	require.Empty(t, got.Faults.List)
	require.Len(t, got.Events, len(batch), "a span that is not valid changes nothing")
	var causes []string
	for _, c := range got.Causes {
		causes = append(causes, c.Parent()+" "+c.State)
	}
	require.Equal(t, []string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=b", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 c=d",
		"00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203332-00 ",
	}, causes)

	got, err = ParseCloudEvent([]byte(cloudEventWith(sound, first)), defaultLimits)
	require.NoError(t, err)
	require.Len(t, got.Causes, 1)
	got, err = ParseCloudEvent([]byte(cloudEventWith(sound, first, first)), defaultLimits)
	require.NoError(t, err)
	require.Equal(t, "traceparent: appears more than once", got.Faults.List[0].Detail)
}
