package cosmos

import "github.com/messagehub/messagehub/cosmos/client"

// The kinds of documents. A change that raises one of these numbers follows the rules
// for formats in the package comment.
var (
	headDocument   = client.DocumentKind{Name: "head", Format: 1}
	entryDocument  = client.DocumentKind{Name: "entry", Format: 1}
	drawerDocument = client.DocumentKind{Name: "drawer", Format: 1}
	pageDocument   = client.DocumentKind{Name: "page", Format: 1}
	filterDocument = client.DocumentKind{Name: "filter", Format: 1}
	gateDocument   = client.DocumentKind{Name: "gate", Format: 1}
	bundleDocument = client.DocumentKind{Name: "bundle", Format: 1}
	noticeDocument = client.DocumentKind{Name: "notice", Format: 1}
	recordDocument = client.DocumentKind{Name: "record", Format: 1}
	groupsDocument = client.DocumentKind{Name: "groups", Format: 1}
	sweepDocument  = client.DocumentKind{Name: "sweep", Format: 1}
)

func (*head) DocumentKind() client.DocumentKind      { return headDocument }
func (*entry) DocumentKind() client.DocumentKind     { return entryDocument }
func (*drawer) DocumentKind() client.DocumentKind    { return drawerDocument }
func (*page) DocumentKind() client.DocumentKind      { return pageDocument }
func (*filterDoc) DocumentKind() client.DocumentKind { return filterDocument }
func (*gate) DocumentKind() client.DocumentKind      { return gateDocument }
func (*bundleDoc) DocumentKind() client.DocumentKind { return bundleDocument }
func (*noticeDoc) DocumentKind() client.DocumentKind { return noticeDocument }
func (*recordDoc) DocumentKind() client.DocumentKind { return recordDocument }
func (*groupsDoc) DocumentKind() client.DocumentKind { return groupsDocument }
func (*sweepDoc) DocumentKind() client.DocumentKind  { return sweepDocument }

// A drawerItem has the members of a page, or of the filter of a drawer, that a sweep
// reads.
type drawerItem struct {
	ID string `json:"id"`
	client.FormatNumber
}

func (d *drawerItem) DocumentKind() client.DocumentKind {
	if d.ID == filterID {
		return filterDocument
	}
	return pageDocument
}
