package repository

import (
	"fmt"
	"strings"
)

// NewerFormatFinding is the Kind of a Finding about a mailbox, or a document of objects, in a newer
// format that this version does not know. The mailbox or document was not checked. It is not damaged.
const NewerFormatFinding = "newer-format"

// A CheckReport contains the results of a check so far.
type CheckReport struct {
	Recipients int64     `json:"recipients"`
	Cabinets   int64     `json:"cabinets"`
	Drawers    int64     `json:"drawers"`
	Events     int64     `json:"events"` // number of retained events
	Open       int64     `json:"open"`   // number of open bundles
	Objects    int64     `json:"objects,omitempty"`
	Rows       int64     `json:"rows,omitempty"` // number of rows of objects
	Found      int64     `json:"found"`
	Repaired   int64     `json:"repaired"`
	Findings   []Finding `json:"findings,omitzero"` // the first findings; Found is the number of all findings; nil: not in the JSON
	Resume     string    `json:"resume,omitempty"`
}

// Plus returns the report of two consecutive parts of a check: r, then later. Its Resume is
// later.Resume.
func (r *CheckReport) Plus(later *CheckReport) CheckReport {
	sum := *later
	sum.Recipients += r.Recipients
	sum.Cabinets += r.Cabinets
	sum.Drawers += r.Drawers
	sum.Events += r.Events
	sum.Open += r.Open
	sum.Objects += r.Objects
	sum.Rows += r.Rows
	sum.Found += r.Found
	sum.Repaired += r.Repaired
	sum.Findings = append(append([]Finding{}, r.Findings...), later.Findings...)
	return sum
}

// Clean reports whether nothing was found, or all findings were repaired.
func (r *CheckReport) Clean() bool { return r.Found == r.Repaired }

// A Finding is a violation of an invariant, or data of a newer format.
type Finding struct {
	Rule      string `json:"rule"` // violated invariant in GUARANTEES.md: H1 to H10, or L1 to L10; "": no invariant is violated
	Kind      string `json:"kind"`
	Recipient string `json:"recipient"`        // "" if the finding is about objects
	Bucket    string `json:"bucket,omitempty"` // bucket of the objects; "" if unknown, or if the finding is about a mailbox
	Where     string `json:"where"`            // the document that the finding is about
	Text      string `json:"text"`
	Damage    bool   `json:"damage"` // no repair can restore the data
	Repaired  bool   `json:"repaired"`
}

func (f *Finding) String() string {
	state := "repairable"
	switch {
	case f.Repaired:
		state = "repaired"
	case f.Damage:
		state = "damage"
	case f.Kind == NewerFormatFinding:
		state = "not checked"
	}
	return fmt.Sprintf("%s %s: %s: %s: %s (%s)", f.Rule, f.Kind, f.Subject(), f.Where, f.Text, state)
}

// IsOfObjects reports whether the finding is about objects; other findings are about a mailbox.
func (f *Finding) IsOfObjects() bool { return strings.HasPrefix(f.Rule, "L") }

// Subject returns the recipient of a mailbox, or the bucket of objects.
func (f *Finding) Subject() string {
	if f.IsOfObjects() {
		return strings.TrimSpace("bucket " + f.Bucket)
	}
	return f.Recipient
}
