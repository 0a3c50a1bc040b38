package engine

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"hash/fnv"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/query"
	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A pagePosition is the position at which a result page ended. It is encoded in the continuation token. The next page
// needs nothing else, because the engine stores nothing between pages.
type pagePosition struct {
	seq     uint64        // sequence number of the last returned document
	given   int           // number of results on all pages so far, needed for TOP and LIMIT
	ordered bool          // true if the query has ORDER BY
	keys    []query.Value // sort key of the last returned document
	inOrder bool          // the order equals the order of insertion, if the last write is still written
	written uint64        // number of the partition's last write; set only with inOrder
	partial uint64        // sequence number of a document of which only some results were returned, or 0
	row     int           // number of returned results of the document partial
}

type tokenJSON struct {
	Query   uint64            `json:"q"` // fingerprint of the query that the token continues
	Seq     uint64            `json:"s"`
	Given   int               `json:"n,omitempty"`
	Ordered bool              `json:"o,omitempty"`
	Keys    []json.RawMessage `json:"k,omitempty"` // sort key, in which [] stands for undefined, [1] for any array and {} for any object
	InOrder bool              `json:"i,omitempty"`
	Written uint64            `json:"w,omitempty"`
	Partial uint64            `json:"p,omitempty"`
	Row     int               `json:"r,omitempty"`
}

// queryFingerprint returns a hash of a query request, which is equal for all its pages.
func queryFingerprint(q QueryRequest) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(q.Text)) // never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(q.Partition))
	return h.Sum64()
}

func (p pagePosition) encodeToken(q QueryRequest) string {
	t := tokenJSON{Query: queryFingerprint(q), Seq: p.seq, Given: p.given, Ordered: p.ordered, InOrder: p.inOrder, Written: p.written, Partial: p.partial, Row: p.row}
	for _, v := range p.keys {
		raw := json.RawMessage(`[]`) // [] stands for undefined
		switch v.Kind {
		case query.Undefined:
		case query.Array:
			raw = json.RawMessage(`[1]`)
		case query.Object:
			raw = json.RawMessage(`{}`)
		default:
			raw = v.Append(nil)
		}
		t.Keys = append(t.Keys, raw)
	}
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // cannot fail for numbers and valid JSON
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseToken decodes the continuation token of q.
func (p *pagePosition) parseToken(q QueryRequest) error {
	wrong := badRequest("the continuation token is not one of this query")
	b, err := base64.RawURLEncoding.DecodeString(q.Continuation)
	if err != nil || len(b) < 4 {
		return wrong
	}
	b, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	var t tokenJSON
	if crc32.ChecksumIEEE(b) != sum || json.Unmarshal(b, &t) != nil {
		return wrong
	}
	orders := len(q.Query.Orders())
	if t.Query != queryFingerprint(q) || t.Given < 0 || t.Seq == 1<<64-1 || len(t.Keys) != orders || t.Ordered != (orders > 0) {
		return wrong
	}
	*p = pagePosition{seq: t.Seq, given: t.Given, ordered: t.Ordered, inOrder: t.InOrder, written: t.Written, partial: t.Partial, row: t.Row}
	for _, raw := range t.Keys {
		text, err := rawjson.Compact(nil, raw)
		if err != nil {
			return wrong
		}
		v := query.ParseValue(text)
		if v.Kind == query.Array && len(text) == 2 {
			v = query.Value{}
		}
		p.keys = append(p.keys, v)
	}
	return nil
}
