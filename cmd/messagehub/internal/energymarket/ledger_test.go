package energymarket

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ledgerOfTwo returns a ledger that contains two sent events. The second event
// has a payload.
func ledgerOfTwo() Ledger {
	l := NewLedger()
	l.SendEvent(0, &Event{ID: "e0", Recipient: "a", Origin: "Charges", ContentType: "c"})
	l.SendEvent(0, &Event{ID: "e1", Recipient: "a", Origin: "Charges", ContentType: "c", Payload: []byte(document)})
	return l
}

const document = `{"Price_MarketDocument":{"mRID":"e1","n":2}}`

func TestReceiveBundle_AcceptsManifestsAndDocuments(t *testing.T) {
	for _, bodies := range [][]string{
		{`[{"id":"e0","recipient":"a","sequence":1},{"id":"e1","recipient":"a","sequence":2,"payload":` + document + `}]`},
		{`[{"id":"e0","recipient":"a","sequence":1}]`, `[` + document + `]`},
	} {
		l := ledgerOfTwo()
		read := 0
		for _, body := range bodies {
			require.NoError(t, l.ReceiveBundle("a", body, []byte(body), l.Now()))
			l.Confirm("a", body, true)
			read += l.Size("a", body)
		}
		require.Equal(t, 2, read)
		v := l.Check()
		require.True(t, v.OK(), v.Details())
	}
}

func TestReceiveBundle_ReportsAFaultyBundle(t *testing.T) {
	for _, tc := range []struct{ name, body, want string }{
		{"no JSON", `[`, "its body is not JSON"},
		{"an element of another kind", `[{"id":7}]`, "element 0: "},
		{"an event of another actor", `[{"id":"e0","recipient":"b","sequence":1}]`, `event "e0" was never sent to this actor`},
		{"a document that was never sent", `[{"Price_MarketDocument":{"mRID":"e9"}}]`, `event "e9" was never sent to this actor`},
		{"a document without an id", `[{"n":2}]`, `event "" was never sent to this actor`},
		{"a payload that changes", `[{"id":"e1","recipient":"a","sequence":2,"payload":{}}]`, "event e1: its content is not the one that was sent"},
		{"a payload that is missing", `[{"id":"e1","recipient":"a","sequence":2}]`, "event e1: its content is not the one that was sent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := ledgerOfTwo()
			require.ErrorContains(t, l.ReceiveBundle("a", "b1", []byte(tc.body), l.Now()), "bundle b1 of a: "+tc.want)
			require.False(t, l.Check().OK())
		})
	}
}
