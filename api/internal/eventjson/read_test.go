package eventjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/messagehub/messagehub/domain"
)

const (
	kilobyte = 1 << 10
	megabyte = 1 << 20
)

var defaultLimits = Limits{Events: 10_000, Payload: megabyte}

// encode returns the JSON body of a request with events.
func encode(events []domain.Event) []byte {
	type wire struct {
		ID               string          `json:"id"`
		Recipient        string          `json:"recipient"`
		Origin           string          `json:"origin"`
		ContentType      string          `json:"contentType"`
		DocumentType     string          `json:"documentType"`
		SupportsBundling bool            `json:"supportsBundling"`
		Weight           int64           `json:"weight"`
		Payload          json.RawMessage `json:"payload,omitempty"`
	}
	all := make([]wire, len(events))
	for i, e := range events {
		all[i] = wire{e.ID.String(), e.Recipient.String(), e.Origin.String(), e.ContentType.String(), e.DocumentType.String(), e.SupportsBundling, int64(e.Weight), e.Payload}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(all); err != nil {
		panic(err)
	}
	return text.Bytes()
}

// manyEvents returns the JSON body of a request with n events for ten recipients. Every tenth event
// has a payload of payload bytes.
func manyEvents(n, payload int) []byte {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"00000000-0000-4000-8000-%012d","recipient":"579000133055%d","origin":"TimeSeries","contentType":"measured-data","documentType":"NotifyValidatedMeasureData","supportsBundling":true,"weight":20`, i+1, i%10)
		if payload > 0 && i%10 == 0 {
			fmt.Fprintf(&b, `,"payload":{"series":[%s0]}`, strings.Repeat("1.25,", payload/5))
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return []byte(b.String())
}

// A body arrives in pieces of various sizes. The decoded events are always the same.
func TestRead_DoesNotDependOnThePiecesOfABody(t *testing.T) {
	text := manyEvents(300, 100_000/10)
	want, err := Read(bytes.NewReader(text), defaultLimits)
	if err != nil || len(want.Events) != 300 {
		t.Fatalf("%d events, error %v; want 300", len(want.Events), err)
	}
	for name, r := range map[string]*chunked{
		"of one byte":       {text: text, size: 1},
		"of 7 bytes":        {text: text, size: 7},
		"of 64 KB and one":  {text: text, size: 64*kilobyte + 1},
		"of a megabyte":     {text: text, size: megabyte},
		"with the EOF late": {text: text, size: 4096, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(r, defaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(encode(got.Events), encode(want.Events)) {
				t.Error("the events differ from those of the body in one piece")
			}
		})
	}
}

// chunked is a reader that returns its text in pieces of at most size bytes. Unless late is set,
// io.EOF comes together with the last piece.
type chunked struct {
	text []byte
	size int
	late bool
	r    interface{ Read([]byte) (int, error) }
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.r == nil {
		c.r = bytes.NewReader(c.text)
		if !c.late {
			c.r = iotest.DataErrReader(bytes.NewReader(c.text))
		}
	}
	return c.r.Read(p[:min(len(p), c.size)])
}

// A client sends a huge event byte by byte. The hub does not scan the event again for each byte:
// the work is proportional to the length of the event.
func TestRead_ScansAHugeEventOnlyAFewTimes(t *testing.T) {
	text := []byte(`[{"payload":"` + strings.Repeat("x", megabyte) + `"}]`)
	fills := 0
	array := elements{r: readerFunc(func(p []byte) (int, error) {
		n := copy(p[:min(len(p), 100)], text)
		if text = text[n:]; n == 0 {
			return 0, io.EOF
		}
		return n, nil
	})}
	if err := array.openArray("events"); err != nil {
		t.Fatal(err)
	}
	for valueEnd(array.buf[array.at:], false) < 0 {
		array.fillBuffer()
		fills++
	}
	if fills > 25 {
		t.Errorf("looked for the end of the event %d times, want at most once per doubling", fills)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// FuzzRead decodes arbitrary bodies. Decoding must not panic. encoding/json must decode the same
// content from an accepted event, and encoding and decoding the events must not change them.
func FuzzRead(f *testing.F) {
	f.Add(manyEvents(2, 20))
	const fields = `"id":"00000000-0000-4000-8000-000000000001","recipient":"a","origin":"b","contentType":"c","documentType":"d","supportsBundling":true`
	for _, text := range []string{
		``, ` [ ] `, `[{}]`, `[null,1,"x",[]]`, `[{` + fields + `,"weight":1}]`, `[{` + fields + `,"weight":-0}]`, `[{` + fields + `,"weight":1e3}]`,
		`[{` + fields + `,"weight":99999999999999999999}]`, `[{` + fields + `,"weight":1,"payload":{"a":[1, "\u00e5\\"]}}]`,
		`[{` + fields + `,"weight":1,"payload":null}] x`, `[{` + fields + `,"w\u0065ight":1}]`, `[{` + fields + `,"weight":1,}]`, `[{"id":"` + "\xff" + `"}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := Read(bytes.NewReader(text), defaultLimits)
		if err != nil {
			return
		}
		if !json.Valid(text) {
			t.Fatalf("taken, but no JSON: %q", text)
		}
		var loose []json.RawMessage
		if err := json.Unmarshal(text, &loose); err != nil {
			t.Fatalf("taken, but no array: %v", err)
		}
		if n := first.Count; n != len(loose) {
			t.Fatalf("%d events, want %d: %q", n, len(loose), text)
		}
		for i := range first.Events {
			checkSame(t, &first.Events[i], loose[first.numbers[i]])
		}
		second, err := Read(bytes.NewReader(encode(first.Events)), defaultLimits)
		if err != nil || second.Faults.Total > 0 {
			t.Fatalf("not taken again: %v, %v", err, second)
		}
		for i := range first.Events {
			a, b := &first.Events[i], &second.Events[i]
			if a.ID != b.ID || a.Digest() != b.Digest() {
				t.Errorf("event %d: %v became %v", i, a, b)
			}
		}
	})
}

// checkSame compares e with the event that encoding/json decodes from the same text.
func checkSame(t *testing.T, e *domain.Event, text json.RawMessage) {
	t.Helper()
	var loose struct {
		ID, Recipient, Origin, ContentType, DocumentType string
		SupportsBundling                                 bool
		Weight                                           int64
		Payload                                          json.RawMessage
	}
	if err := json.Unmarshal(text, &loose); err != nil {
		t.Fatalf("taken, but %v: %s", err, text)
	}
	var payload bytes.Buffer
	if len(loose.Payload) > 0 && string(loose.Payload) != "null" {
		if err := json.Compact(&payload, loose.Payload); err != nil {
			t.Fatal(err)
		}
	}
	same := strings.EqualFold(e.ID.String(), loose.ID) && e.Recipient.String() == loose.Recipient &&
		e.Origin.String() == loose.Origin && e.ContentType.String() == loose.ContentType &&
		e.DocumentType.String() == loose.DocumentType && e.SupportsBundling == loose.SupportsBundling &&
		int64(e.Weight) == loose.Weight && bytes.Equal(e.Payload, payload.Bytes())
	if !same {
		t.Errorf("got %+v of %s", e, text)
	}
}

func BenchmarkRead(b *testing.B) {
	for _, bm := range []struct {
		name    string
		payload int
	}{
		{"10000 events", 0},
		{"10000 events, a tenth with 10 KB", 10_000},
	} {
		b.Run(bm.name, func(b *testing.B) {
			text := manyEvents(10_000, bm.payload)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				got, err := Read(bytes.NewReader(text), defaultLimits)
				if err != nil || len(got.Events) != 10_000 {
					b.Fatal(len(got.Events), err)
				}
			}
		})
	}
}
