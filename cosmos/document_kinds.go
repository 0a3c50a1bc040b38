package cosmos

import (
	"strings"

	"github.com/messagehub/messagehub/cosmos/client"
)

// Nodes of two versions work on one store during an upgrade, and during and after a downgrade.
//
// A version that only adds members to documents does not raise a Format. An older node retains unknown
// members, at every level, as long as it retains the object that contains them. It drops them with the
// object: a deleted entry, an intent that has ended, a milestone that the floor has passed. Marks,
// fronts, the events in a page or a tail, trace spans and the name of a cabinet are not objects and cannot
// be extended in this way. The section "How to add a stored member" of CONTRIBUTING lists the steps.
//
// If older nodes must not write while a new version runs, the new version raises the Format of a kind,
// which is the member v of its documents. An older node that reads such a document fails with NewerFormat,
// reports the mailbox, and no longer writes to it: every call begins with the head or the gates, each
// patch has the format as a condition, and each replacement is conditional on the etag that was read. A
// newer version follows these rules:
//
//   - It stores documents in a newer format only while the store has a level with that format; see package
//     level. Heads of formats 2 and 3 are older than levels, and belong to level 1.
//   - Before it stores the first document of a mailbox in a newer format, it raises the format of the head
//     by a conditional write, while the head has no intent. Then it does the same to all gates and open
//     bundles. If an older node read one of these documents before, the etag or the condition of its patch
//     makes its write fail.
//   - It never lowers the format of a document, except that of a head whose last tail was flushed: then a
//     version that does not know tails may serve the mailbox again. A tail does not raise the format of
//     gates and bundles, because a Dequeue touches neither heads nor tails. A removed cabinet does not
//     raise it either: a Dequeue needs only the position of its own cabinet, which is in the gate once a
//     bundle of that cabinet is open.
//   - A write that changes the retention in a head changes the fence, too.
//   - Members whose names begin with an underscore belong to Cosmos.
//
// TestTwoVersions_ShareAStoreAndLoseNothing runs two builds side by side;
// TestEveryReplacedDocument_KeepsUnknownMembers adds a member to every stored object.

// These are the kinds of documents, with the highest format that this version knows.
var (
	headDocument   = client.DocumentKind{Name: "head", Format: removalFormat}
	entryDocument  = client.DocumentKind{Name: "entry", Format: 1}
	drawerDocument = client.DocumentKind{Name: "drawer", Format: 1}
	pageDocument   = client.DocumentKind{Name: "page", Format: 1}
	filterDocument = client.DocumentKind{Name: "filter", Format: 1} // the filter of a drawer, a block of drawers or a recipient
	gateDocument   = client.DocumentKind{Name: "gate", Format: 1}
	bundleDocument = client.DocumentKind{Name: "bundle", Format: 1}
	noticeDocument = client.DocumentKind{Name: "notice", Format: 1}
	recordDocument = client.DocumentKind{Name: "record", Format: 1}
	groupsDocument = client.DocumentKind{Name: "groups", Format: 1}
	sweepDocument  = client.DocumentKind{Name: "sweep", Format: 1}
)

// DocumentKinds returns the kinds of documents that this package stores, with the highest
// format of each that this version knows.
func DocumentKinds() []client.DocumentKind {
	return []client.DocumentKind{
		headDocument, entryDocument, drawerDocument, pageDocument, filterDocument, gateDocument,
		bundleDocument, noticeDocument, recordDocument, groupsDocument, sweepDocument,
	}
}

func (*head) DocumentKind() client.DocumentKind               { return headDocument }
func (*catalogEntry) DocumentKind() client.DocumentKind       { return entryDocument }
func (*drawer) DocumentKind() client.DocumentKind             { return drawerDocument }
func (*drawerPage) DocumentKind() client.DocumentKind         { return pageDocument }
func (*filterDoc) DocumentKind() client.DocumentKind          { return filterDocument }
func (*blockFilterDoc) DocumentKind() client.DocumentKind     { return filterDocument }
func (*recipientFilterDoc) DocumentKind() client.DocumentKind { return filterDocument }
func (*gate) DocumentKind() client.DocumentKind               { return gateDocument }
func (*bundleDoc) DocumentKind() client.DocumentKind          { return bundleDocument }
func (*bundleState) DocumentKind() client.DocumentKind        { return bundleDocument }
func (*noticeDoc) DocumentKind() client.DocumentKind          { return noticeDocument }
func (*recordDoc) DocumentKind() client.DocumentKind          { return recordDocument }
func (*deadLetterOrderDoc) DocumentKind() client.DocumentKind { return recordDocument }
func (*groupsDoc) DocumentKind() client.DocumentKind          { return groupsDocument }
func (*sweepDoc) DocumentKind() client.DocumentKind           { return sweepDocument }

// A drawerItem has the members of a page or a filter that a sweep reads.
type drawerItem struct {
	ID string `json:"id"`
	client.FormatNumber
}

func (d *drawerItem) DocumentKind() client.DocumentKind {
	if d.ID == filterID || strings.HasPrefix(d.ID, blockFilterPrefix) {
		return filterDocument
	}
	return pageDocument
}
