package push

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

var partyDocument = client.DocumentKind{Name: "party", Format: 1}

// A partyDoc is the stored form of a repository.Party. Its id is the name of the party, and its partition
// is the list, so a query returns a list in the order of the names.
type partyDoc struct {
	ID           string   `json:"id"`
	PartitionKey string   `json:"partitionKey"`
	Kind         string   `json:"kind"`
	WriteID      string   `json:"writeId"`
	Label        string   `json:"label,omitempty"`
	TokenSum     string   `json:"tokenSum,omitempty"` // SHA-256 of the token, in 64 hexadecimal digits
	Token        string   `json:"token,omitempty"`    // encrypted
	CallbackURL  string   `json:"callbackUrl,omitempty"`
	StartSegment int      `json:"startSegment,omitempty"`
	StartAt      []string `json:"startAt,omitempty"`
	Created      int64    `json:"created"` // in microseconds, like all times in this document
	Changed      int64    `json:"changed"`
	watchedMark
	// ETag is the etag of a document that was read. Because it is a member of the document, queries
	// return it too.
	ETag azcore.ETag `json:"_etag,omitempty"`
	client.Document
}

func (*partyDoc) DocumentKind() client.DocumentKind { return partyDocument }

// listKey returns the partition key of a list of parties. No cursor id begins with a bar, so the key
// differs from every cursor id.
func listKey(list domain.PartyList) string { return "|" + list.String() }

// set copies all members of a party.
func (d *partyDoc) set(p *repository.Party, writeID string) {
	d.ID, d.PartitionKey, d.Kind, d.WriteID = p.ID.String(), listKey(p.ID.List()), partyDocument.Name, writeID
	d.Label, d.Token, d.CallbackURL, d.ETag = p.Label, p.Token, p.CallbackURL, ""
	d.TokenSum = ""
	if p.TokenSum != [sha256.Size]byte{} {
		d.TokenSum = hex.EncodeToString(p.TokenSum[:])
	}
	d.StartSegment, d.StartAt = p.Start.Segment, textsOf(p.Start.Positions)
	d.Created, d.Changed = toMicros(p.Created), toMicros(p.Changed)
}

// toParty parses the party that d stores. list is the list that contains the party.
func (d *partyDoc) toParty(list domain.PartyList) (*repository.Party, error) {
	var p documentParser
	found := &repository.Party{
		ID: parse(&p, d.ID, list.Parse), Label: d.Label, Token: d.Token, CallbackURL: d.CallbackURL,
		Start:   repository.StreamEnd{Segment: d.StartSegment, Positions: parseAll(&p, d.StartAt, domain.ParsePosition)},
		Created: fromMicros(d.Created), Changed: fromMicros(d.Changed), Version: repository.PartyVersion(d.ETag),
	}
	if d.TokenSum != "" {
		found.TokenSum = parse(&p, d.TokenSum, parseSum)
	}
	if p.err != nil {
		return nil, domain.Errorf(domain.Damaged, "document %s of %s: %w", d.ID, d.PartitionKey, p.err)
	}
	return found, nil
}

func parseSum(text string) (sum [sha256.Size]byte, err error) {
	b, err := hex.DecodeString(text)
	if err == nil && len(b) != len(sum) {
		err = domain.Errorf(domain.Damaged, "want %d hexadecimal digits, got %d", 2*len(sum), len(text))
	}
	if err != nil {
		return sum, err
	}
	return [sha256.Size]byte(b), nil
}
