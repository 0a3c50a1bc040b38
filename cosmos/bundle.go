package cosmos

import (
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// A bundleDoc is the document of a bundle. It stores the locations of the events, not their ids.
type bundleDoc struct {
	ID            string          `json:"id"`
	Recipient     string          `json:"recipient"`
	Kind          string          `json:"kind"` // always "bundle"
	WriteID       string          `json:"operation"`
	State         string          `json:"state"` // stateOpen, stateDequeued, …
	Group         string          `json:"group"`
	Cabinet       cabinetName     `json:"cabinet"`
	Count         int             `json:"count"`
	Weight        domain.Weight   `json:"weight,string"` // a string, because numbers in Cosmos are exact only up to 2^53
	First         domain.Sequence `json:"first"`
	Last          domain.Sequence `json:"last"`
	DocumentTypes []string        `json:"documentTypes"`
	Content       string          `json:"content"`
	Format        string          `json:"format"`
	Version       string          `json:"version"`
	Opened        time.Time       `json:"opened"`
	Ranges        []slotRange     `json:"ranges"`           // at most six
	TTL           int             `json:"ttl,omitempty"`    // closed bundles only: seconds from the last write to the removal by Cosmos
	Before        string          `json:"before,omitempty"` // id of the previously closed bundle of the group
	Start         position        `json:"start"`            // position of the gate in the cabinet when the bundle was opened
	Next          domain.Sequence `json:"next,omitempty"`   // hint: number of the next event in the last drawer of the bundle
	NextSaved     millis          `json:"nextSaved,omitempty"`
	Behind        openingBacklog  `json:"behind,omitzero"`
	BodyLength    int64           `json:"bodyLength,omitempty"`
	BodyDigest    []byte          `json:"bodyDigest,omitempty"` // not stored by older versions
	Watched       bool            `json:"watched,omitempty"`    // the bundle has watches, so its Dequeue and its removal write notices
	Expires       millis          `json:"expires,omitempty"`    // instead of TTL, if the bundle was watched when it was closed: time from which a sweep may remove the bundle
	Changes       int64           `json:"changes,omitempty"`    // number of changes of which watchers were notified
	Peeked        packed          `json:"peeked,omitempty"`     // trace span of the Peek that opened the bundle; see encodeSpan

	// The following members are used in content mode request.
	List           string             `json:"list,omitempty"`
	Object         string             `json:"object,omitempty"`  // name of the object with the content, once the domain has answered
	Gone           bool               `json:"gone,omitempty"`    // the object is known to be deleted
	ContentFailure *contentFailureDoc `json:"trouble,omitempty"` // not nil in this mode
	Opening        int64              `json:"opening,omitempty"` // generation of the gate when it last opened the bundle
	client.Document

	etag azcore.ETag
}

// A contentFailureDoc counts the failed attempts of a domain to produce the content.
type contentFailureDoc struct {
	Failures int    `json:"failures"`
	Reason   string `json:"reason"`
	Text     string `json:"text"`
	Call     string `json:"call"` // id of the last call of Fail

	Unknown client.UnknownMembers `json:",embed"`
}

const (
	bundleKind    = "bundle"
	stateOpen     = "open"
	stateDequeued = "dequeued"
	stateSkipped  = "skipped"  // closed by an operator, not by its actor
	stateReleased = "released" // withdrawn by an operator; later bundles deliver its events
)

// A slotRange is a range of slots of a drawer.
type slotRange struct {
	Drawer  string `json:"drawer"`
	Ordinal int    `json:"ordinal"`
	From    int    `json:"from"`
	To      int    `json:"to"`               // exclusive
	InTail  bool   `json:"inTail,omitempty"` // the range was in the tail when the bundle was opened, so the drawer may have no document

	Unknown client.UnknownMembers `json:",embed"`
}

func (d *bundleDoc) toBundle() (domain.Bundle, error) {
	b := domain.Bundle{
		Count: d.Count, Weight: d.Weight, First: d.First, Last: d.Last,
		Content: domain.ContentMode(d.Content), Format: domain.Format(d.Format), Version: d.Version, Opened: d.Opened, Peeked: d.Peeked.decodeSpan(),
		List: d.List, Object: d.Object, Gone: d.Gone,
	}
	if t := d.ContentFailure; t != nil {
		b.ContentFailure = domain.ContentFailure{Failures: t.Failures, Reason: t.Reason, Text: t.Text}
	}
	recipient, err := domain.ParseActorID(d.Recipient)
	if err == nil {
		b.ID, err = domain.ParseBundleID(d.ID)
	}
	if err == nil {
		b.Group, err = domain.ParseGroup(d.Group)
	}
	if err == nil {
		b.Cabinet, err = cabinetOf(recipient, d.Cabinet)
	}
	for _, text := range d.DocumentTypes {
		t, terr := domain.ParseDocumentType(text)
		if err == nil {
			err = terr
		}
		b.DocumentTypes = append(b.DocumentTypes, t)
	}
	b.Body.Length = d.BodyLength
	switch n := len(d.BodyDigest); {
	case n == len(b.Body.Digest):
		b.Body.Digest = domain.Digest(d.BodyDigest)
	case n != 0 && err == nil:
		err = fmt.Errorf("the digest of its body has %d bytes", n)
	}
	if err == nil && len(d.Ranges) == 0 {
		err = errors.New("it has no events")
	}
	if err != nil {
		return b, domain.Errorf(domain.Damaged, "bundle %s of %s: %w", d.ID, d.Recipient, err)
	}
	return b, nil
}

func (d *bundleDoc) isUnanswered() bool { return d.Object == "" }

func newBundleDoc(b *domain.Bundle, writeID string, ranges []slotRange, next domain.Sequence) *bundleDoc {
	d := &bundleDoc{
		ID: b.ID.String(), Recipient: b.Cabinet.Recipient.String(), Kind: bundleKind,
		WriteID: writeID, State: stateOpen,
		Group: b.Group.String(), Cabinet: nameOf(b.Cabinet),
		Count: b.Count, Weight: b.Weight, First: b.First, Last: b.Last,
		Content: string(b.Content), Format: string(b.Format), Version: b.Version, Opened: b.Opened,
		Ranges: ranges, Next: next,
		BodyLength: b.Body.Length, Peeked: encodeSpan(b.Peeked),
		List: b.List, Object: b.Object, Gone: b.Gone,
	}
	if b.Content == domain.Request {
		d.ContentFailure = &contentFailureDoc{Failures: b.ContentFailure.Failures, Reason: b.ContentFailure.Reason, Text: b.ContentFailure.Text}
	}
	if b.Body != (domain.Body{}) {
		d.BodyDigest = b.Body.Digest[:]
	}
	for _, t := range b.DocumentTypes {
		d.DocumentTypes = append(d.DocumentTypes, t.String())
	}
	return d
}

// setOpening stores the generation of the gate that opened d, if d is in content mode request. In this
// mode every Dequeue writes a notice.
func (d *bundleDoc) setOpening(g *gate) {
	if d.Content == string(domain.Request) {
		d.Opening = g.Generation
	}
}

// ifOpen is a patch condition: the bundle is open.
const ifOpen = "c.state = '" + stateOpen + "'"

// ifUnwatched is a patch condition: the bundle is not watched.
const ifUnwatched = "(NOT IS_DEFINED(c.watched))"

// closePatch returns the patch that closes d with state. Cosmos deletes the bundle when the retention has
// passed. If the bundle is watched, a sweep removes it instead and writes a notice; see
// retention_watched.go.
//
// The patch requires that the bundle is open and has the write id of d, because a Replay opens the bundle
// with another write id. The patch has no condition on the etag. While the bundle is open, only its
// content changes, and once the domain has answered, a Dequeue does not depend on the content. Also, a
// Peek may change the etag at any time; see proveOpen. If d is not watched, the patch also requires that
// the bundle is still not watched. Otherwise a watch that was added since would not be notified.
func (d *bundleDoc) closePatch(state, writeID string, retention time.Duration, now time.Time) azcosmos.PatchOperations {
	conditions := []string{ifOpen, "c.operation = '" + d.WriteID + "'"}
	if !d.Watched {
		conditions = append(conditions, ifUnwatched)
	}
	ops := client.NewPatch(bundleDocument, conditions...)
	ops.AppendSet("/state", state)
	ops.AppendSet("/operation", writeID)
	if retention > 0 {
		setExpiry(&ops, d.Watched, retention, now)
	}
	return ops
}

// dequeuePatch returns the patch with which a Dequeue closes d. If the bundle is watched, the patch also
// counts the Dequeue as a change.
func (d *bundleDoc) dequeuePatch(writeID string, retention time.Duration, now time.Time) azcosmos.PatchOperations {
	ops := d.closePatch(stateDequeued, writeID, retention, now)
	if d.Watched {
		ops.AppendSet("/changes", d.Changes+1)
	}
	return ops
}

// setExpiry adds the expiry of a bundle to the patch that closes the bundle.
func setExpiry(ops *azcosmos.PatchOperations, isWatched bool, retention time.Duration, now time.Time) {
	if isWatched {
		ops.AppendSet("/expires", millisOf(now.Add(retention)))
		return
	}
	ops.AppendSet("/ttl", timeToLive(retention))
}

// timeToLive returns a retention in seconds, at least 1: Cosmos treats 0 as no limit.
func timeToLive(retention time.Duration) int64 {
	return int64(max(retention.Round(time.Second)/time.Second, 1))
}

// reopen returns a copy of d in the open state, opened by g.
func (d *bundleDoc) reopen(g *gate, writeID string) *bundleDoc {
	c := *d
	c.State, c.WriteID, c.TTL, c.Expires = stateOpen, writeID, 0, 0
	c.setOpening(g)
	return &c
}
