package cosmos

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/survey"
	"github.com/messagehub/messagehub/domain"
)

// A surveyReader reads heads, gates and bundles for the survey. It computes the backlog of a group from
// the same documents as Peek and Dequeue; see backlog.go.
type surveyReader struct{ r *Repository }

// SurveyReader returns the reader that a survey of the mailboxes uses.
func (r *Repository) SurveyReader() survey.Reader { return surveyReader{r} }

// fileDamage replaces the id of a document that is damaged in the file of an embedded engine, because the
// engine cannot report the id.
const fileDamage = "|file"

// Groups implements survey.Reader.
func (s surveyReader) Groups() []domain.Group { return s.r.opts.Groups.All() }

// Walk implements survey.Reader. It reads the gates before the heads. A mailbox without a head has no
// line, so every line includes the gates.
func (surveyReader) Walk() []survey.Query {
	return []survey.Query{
		{Container: bundlesContainer, Text: "SELECT * FROM c WHERE c.kind = '" + gateKind + "'"},
		{Container: catalogContainer, Text: "SELECT * FROM c WHERE c.id = '" + headID + "'"},
	}
}

// Followed implements survey.Reader.
func (surveyReader) Followed() []string { return []string{catalogContainer, bundlesContainer} }

// A surveyedDocument contains the members that distinguish the kinds of documents.
type surveyedDocument struct {
	ID           string `json:"id"`
	Kind         string `json:"kind"`
	Recipient    string `json:"recipient"`
	PartitionKey string `json:"partitionKey"`
}

// Recipient implements survey.Reader.
func (surveyReader) Recipient(container string, doc []byte) (domain.ActorID, bool) {
	var d surveyedDocument
	if json.Unmarshal(doc, &d) != nil {
		return domain.ActorID{}, false
	}
	name := d.PartitionKey
	switch {
	case container == catalogContainer && d.ID == headID:
	case container == bundlesContainer && (d.Kind == gateKind || d.Kind == bundleKind):
		name = d.Recipient
	default:
		return domain.ActorID{}, false
	}
	recipient, err := domain.ParseActorID(name)
	return recipient, err == nil
}

// Apply implements survey.Reader.
func (s surveyReader) Apply(record []byte, container string, doc []byte, isWalk bool) (next []byte, wanted []survey.Reference) {
	var d surveyedDocument
	_ = json.Unmarshal(doc, &d) // cannot fail, because Recipient has already parsed the document
	r, err := decodeSurveyRecord(record)
	if err != nil && !isWalk {
		wanted = s.mailboxReferences(&d)
	}
	c := s.r.beginCall("survey")
	switch {
	case container == catalogContainer:
		var h head
		if err = c.Decode(doc, d.PartitionKey, &h); err == nil {
			err = h.validateTails()
			r.setHead(&h, s.r.groupOf)
		}
	case d.Kind == gateKind:
		var more []survey.Reference
		more, err = s.applyGate(c, r, &d, doc, isWalk)
		wanted = append(wanted, more...)
	default:
		err = s.applyBundle(c, r, &d, doc)
	}
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	r.setDamage(d.ID, reason)
	return r.encode(), wanted
}

// mailboxReferences returns references to the head and the gates of a mailbox.
func (s surveyReader) mailboxReferences(d *surveyedDocument) []survey.Reference {
	recipient := d.Recipient + d.PartitionKey // one of these two members is empty
	refs := []survey.Reference{{Container: catalogContainer, Partition: recipient, ID: headID}}
	for _, group := range s.Groups() {
		refs = append(refs, survey.Reference{Container: bundlesContainer, Partition: recipient, ID: gateID(group)})
	}
	return refs
}

func (s surveyReader) applyGate(c *call, r *surveyRecord, d *surveyedDocument, doc []byte, isWalk bool) (wanted []survey.Reference, err error) {
	name, _ := strings.CutPrefix(d.ID, gateKind+".")
	group, err := domain.ParseGroup(name)
	if err != nil {
		return nil, domain.Errorf(domain.Damaged, "gate %q of %s: %w", domain.Shorten(d.ID), d.Recipient, err)
	}
	var g gate
	if err := c.Decode(doc, d.Recipient, &g); err != nil {
		return nil, err
	}
	if r.setGate(&g, group) && !isWalk {
		wanted = append(wanted, survey.Reference{Container: catalogContainer, Partition: d.Recipient, ID: headID})
	}
	if !isWalk {
		return wanted, nil
	}
	for _, id := range []string{g.Open, g.Last} {
		if id != "" {
			wanted = append(wanted, survey.Reference{Container: bundlesContainer, ID: id})
		}
	}
	return wanted, nil
}

func (s surveyReader) applyBundle(c *call, r *surveyRecord, d *surveyedDocument, doc []byte) error {
	var b bundleDoc
	if err := c.Decode(doc, d.Recipient, &b); err != nil {
		return err
	}
	id, err := domain.ParseBundleID(b.ID)
	if err != nil {
		return domain.Errorf(domain.Damaged, "bundle %q of %s: %w", domain.Shorten(b.ID), d.Recipient, err)
	}
	group, err := domain.ParseGroup(b.Group)
	if err != nil {
		return domain.Errorf(domain.Damaged, "bundle %s of %s: %w", b.ID, d.Recipient, err)
	}
	r.setBundle(&b, id, group, millisOf(client.ModifiedAt(doc)))
	return nil
}

// References implements survey.Reader. It returns references to the gates, the head, the open bundles,
// and the damaged documents.
func (s surveyReader) References(recipient domain.ActorID, record []byte) []survey.Reference {
	name := recipient.String()
	head := survey.Reference{Container: catalogContainer, Partition: name, ID: headID}
	ofGate := func(group domain.Group) survey.Reference {
		return survey.Reference{Container: bundlesContainer, Partition: name, ID: gateID(group)}
	}
	var refs []survey.Reference
	if record == nil {
		for _, group := range s.Groups() {
			refs = append(refs, ofGate(group))
		}
		return append(refs, head)
	}
	r, _ := decodeSurveyRecord(record) // if the record cannot be decoded, r is empty
	for i := range r.groups {
		if g := &r.groups[i]; g.hasGate {
			refs = append(refs, ofGate(g.group))
		}
	}
	if r.hasHead {
		refs = append(refs, head)
	}
	for i := range r.groups {
		if open := r.groups[i].open; open != (domain.BundleID{}) {
			refs = append(refs, survey.Reference{Container: bundlesContainer, Partition: name, ID: open.String()})
		}
	}
	for _, d := range r.damages {
		switch d.document {
		case fileDamage:
		case headID:
			if !r.hasHead {
				refs = append(refs, head)
			}
		default:
			if ref := (survey.Reference{Container: bundlesContainer, Partition: name, ID: d.document}); !slices.Contains(refs, ref) {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// Renew implements survey.Reader.
func (surveyReader) Renew(old, fresh []byte) []byte {
	before, err := decodeSurveyRecord(old)
	if err != nil {
		return fresh
	}
	r, err := decodeSurveyRecord(fresh)
	if err != nil {
		return fresh
	}
	r.keepHistory(before)
	return r.encode()
}

// Mailbox implements survey.Reader.
func (s surveyReader) Mailbox(recipient domain.ActorID, record []byte) (domain.Mailbox, bool) {
	r, err := decodeSurveyRecord(record)
	if err != nil {
		return domain.Mailbox{Recipient: recipient, Damage: err.Error()}, true
	}
	return r.toMailbox(recipient, s.Groups(), s.r.opts.FreezeNew), r.hasHead || len(r.damages) > 0
}

// Damaged implements survey.Reader.
func (surveyReader) Damaged(record []byte, reason string) []byte {
	r, _ := decodeSurveyRecord(record) // if the record cannot be decoded, r is empty
	r.setDamage(fileDamage, reason)
	return r.encode()
}
