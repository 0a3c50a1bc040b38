package items

import (
	"errors"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Bundle is a bundle in the form of an item, without its id. Domains do not produce content
// for bundles of these layouts, so an item has no results of content requests.
type Bundle struct {
	Group         string             `json:"group"`
	Recipient     string             `json:"recipient"`
	Origin        string             `json:"origin"`
	ContentType   string             `json:"contentType"`
	Count         int                `json:"count"`
	Weight        domain.Weight      `json:"weight"`
	First         domain.Sequence    `json:"first"`
	Last          domain.Sequence    `json:"last"`
	DocumentTypes []string           `json:"documentTypes"`
	Content       domain.ContentMode `json:"content"`
	Format        domain.Format      `json:"format"`
	Version       string             `json:"version"`
	Opened        time.Time          `json:"opened"`
	Length        int64              `json:"length,omitempty"`
	Digest        []byte             `json:"digest,omitempty"`
	List          string             `json:"list,omitempty"`
}

// BundleOf returns b in the form of an item.
func BundleOf(b *domain.Bundle) Bundle {
	item := Bundle{
		Group: b.Group.String(), Recipient: b.Cabinet.Recipient.String(),
		Origin: b.Cabinet.Origin.String(), ContentType: b.Cabinet.ContentType.String(),
		Count: b.Count, Weight: b.Weight, First: b.First, Last: b.Last,
		Content: b.Content, Format: b.Format, Version: b.Version, Opened: b.Opened, List: b.List,
	}
	for _, d := range b.DocumentTypes {
		item.DocumentTypes = append(item.DocumentTypes, d.String())
	}
	if b.Body != (domain.Body{}) {
		item.Length, item.Digest = b.Body.Length, b.Body.Digest[:]
	}
	return item
}

// Bundle returns the bundle of an item.
func (item *Bundle) Bundle(id domain.BundleID) (domain.Bundle, error) {
	cabinet, err := ParseCabinet(item.Recipient, item.Origin, item.ContentType)
	group, err2 := domain.ParseGroup(item.Group)
	err = errors.Join(err, err2)
	b := domain.Bundle{
		ID: id, Group: group, Cabinet: cabinet,
		Count: item.Count, Weight: item.Weight, First: item.First, Last: item.Last,
		Content: item.Content, Format: item.Format, Version: item.Version, Opened: item.Opened, List: item.List,
	}
	for _, text := range item.DocumentTypes {
		d, err3 := domain.ParseDocumentType(text)
		err = errors.Join(err, err3)
		b.DocumentTypes = append(b.DocumentTypes, d)
	}
	b.Body.Length = item.Length
	copy(b.Body.Digest[:], item.Digest)
	if err != nil {
		return domain.Bundle{}, domain.Errorf(domain.Damaged, "stored bundle %s: %w", id, err)
	}
	return b, nil
}

// ParseCabinet parses the parts of a cabinet's key.
func ParseCabinet(recipient, origin, contentType string) (domain.CabinetKey, error) {
	r, err1 := domain.ParseActorID(recipient)
	o, err2 := domain.ParseOrigin(origin)
	c, err3 := domain.ParseContentType(contentType)
	return domain.CabinetKey{Recipient: r, Origin: o, ContentType: c}, errors.Join(err1, err2, err3)
}

// Fits checks that b has the given group and cabinet, and contains the first events that a run has
// yielded. yielded holds the sequence numbers of all events that the run has yielded.
func Fits(b *domain.Bundle, group domain.Group, cabinet domain.CabinetKey, yielded []domain.Sequence) error {
	switch {
	case b.Group != group || b.Cabinet != cabinet:
		return domain.Errorf(domain.Invalid, "add bundle: it is of another group or cabinet than its run")
	case b.Count < 1 || b.Count > len(yielded):
		return domain.Errorf(domain.Invalid, "add bundle: count: want 1 to %d, the events that the run has yielded, got %d", len(yielded), b.Count)
	case b.First != yielded[0] || b.Last != yielded[b.Count-1]:
		return domain.Errorf(domain.Invalid, "add bundle: it says that its events are %d to %d, but they are %d to %d",
			b.First, b.Last, yielded[0], yielded[b.Count-1])
	}
	return nil
}
