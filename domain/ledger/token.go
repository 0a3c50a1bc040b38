package ledger

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// A rowPosition is the position at which a list continues. In a list of all rows, it may be between
// two rows of an object.
type rowPosition struct {
	Query  string    `json:"q"` // fingerprint of the query
	Bucket string    `json:"b,omitempty"`
	Key    string    `json:"k,omitempty"` // key of the last object; "": the list continues at the start of the bucket
	Below  *rowOrder `json:"r,omitempty"` // the list continues with the object's rows below this order; nil: with the next object
}

// A rowOrder is the form of a domain.ObjectOrder in a token.
type rowOrder struct {
	Base      string `json:"b,omitempty"`
	Rank      int    `json:"k,omitempty"`
	After     int64  `json:"a,omitempty"`
	Time      int64  `json:"t,omitempty"`
	Number    int64  `json:"n,omitempty"`
	Type      int    `json:"e,omitempty"`
	Version   string `json:"v,omitempty"`
	Sequencer string `json:"s,omitempty"`
}

func newRowOrder(o domain.ObjectOrder) *rowOrder {
	return &rowOrder{o.Base, int(o.Rank), o.After, o.Time, o.Number, int(o.Type), o.Version.String(), o.Sequencer}
}

// domainOrder returns r as a domain.ObjectOrder. For a nil r, it returns the zero order, at which
// the list of rows begins.
func (r *rowOrder) domainOrder() (o domain.ObjectOrder, err error) {
	if r == nil {
		return o, nil
	}
	o = domain.ObjectOrder{Base: r.Base, Rank: domain.PlacementRank(r.Rank), After: r.After, Time: r.Time, Number: r.Number, Type: domain.ObjectEventType(r.Type), Sequencer: r.Sequencer}
	o.Version, err = domain.ParseVersionID(r.Version)
	return o, err
}

var tokenEncoding = base64.RawURLEncoding.Strict()

// encodeToken encodes a position as a token. A client sends the token to continue the same query.
func (p *rowPosition) encodeToken() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // cannot happen: all fields can be encoded
	}
	return tokenEncoding.EncodeToString(text)
}

// parseToken returns the position in a token. An empty token is the start of the list. parseToken
// fails with Invalid if the token belongs to a different query.
func parseToken(text, query string) (p rowPosition, err error) {
	if text == "" {
		return rowPosition{Query: query}, nil
	}
	malformed := domain.Errorf(domain.Invalid, "pageToken: want the one in links.next of the previous page, got %q", domain.Shorten(text))
	decoded, err := tokenEncoding.DecodeString(text)
	if err != nil {
		return p, malformed
	}
	d := json.NewDecoder(strings.NewReader(string(decoded)))
	d.DisallowUnknownFields()
	if d.Decode(&p) != nil {
		return p, malformed
	}
	if _, err := p.Below.domainOrder(); err != nil {
		return p, malformed
	}
	if p.Query != query {
		return p, domain.Errorf(domain.Invalid, "pageToken: it is of another query; send it with the same parameters as for the previous page")
	}
	return p, nil
}
