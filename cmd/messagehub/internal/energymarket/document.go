package energymarket

import (
	"fmt"
	"time"
)

// makeDocument generates the payload of an event: a compact market document of
// 1 to 20 KB, in the format of the Common Information Model (IEC 62325). Its
// mRID is the event's id.
func (g *Generator) makeDocument(e *Event, to *Actor, at time.Time) []byte {
	size := 1<<10 + g.IntN(19<<10-512)
	coded := func(b []byte, name, code string) []byte {
		return fmt.Appendf(b, `,%q:{"value":%q}`, name, code)
	}
	party := func(b []byte, which, id, role string) []byte {
		b = fmt.Appendf(b, `,"%s_MarketParticipant.mRID":{"codingScheme":"A10","value":%q}`, which, id)
		return coded(b, which+"_MarketParticipant.marketRole.type", role)
	}
	b := make([]byte, 0, size+512)
	b = fmt.Appendf(b, `{"%s_MarketDocument":{"mRID":%q`, e.ContentType, e.ID)
	b = coded(b, "businessSector.type", "23")
	b = fmt.Appendf(b, `,"createdDateTime":%q`, at.Format("2006-01-02T15:04:05.000Z"))
	b = coded(b, "process.processType", "E23")
	b = party(b, "sender", "5790001330552", "DGL")
	b = party(b, "receiver", to.GLN, to.Role)
	b = coded(b, "type", e.DocumentType)
	b = fmt.Appendf(b, `,"Series":[{"mRID":%q,"marketEvaluationPoint.mRID":{"codingScheme":"A10","value":"%d"}`,
		g.UUID(), 571313100000000000+g.Int64N(1_000_000_000))
	b = fmt.Appendf(b, `,"product":"8716867000030","description":"Leveret til %s","Period":{"resolution":"PT15M",`+
		`"timeInterval":{"start":{"value":"2026-01-13T23:00Z"},"end":{"value":"2026-01-14T23:00Z"}},"Point":[`, to.Name)
	for position := 1; position == 1 || len(b) < size; position++ {
		if position > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"position":%d,"quality":{"value":"A04"},"quantity":%d.%03d}`, position, g.IntN(40), g.IntN(1000))
	}
	return append(b, `]}}]}}`...)
}
