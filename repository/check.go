package repository

import "fmt"

// NewerFormatFinding is the Kind of a Finding of a mailbox that a newer version has
// stored in a format that this one does not know. It is not damage, and was not checked.
const NewerFormatFinding = "newer-format"

// A CheckReport is what a check has seen so far.
type CheckReport struct {
	Recipients int64     `json:"recipients"`
	Cabinets   int64     `json:"cabinets"`
	Drawers    int64     `json:"drawers"`
	Events     int64     `json:"events"` // retained ones
	Open       int64     `json:"open"`   // bundles
	Found      int64     `json:"found"`
	Mended     int64     `json:"mended"`
	Findings   []Finding `json:"findings"` // the first of them, if there are very many
	Resume     string    `json:"resume,omitempty"`
}

// Clean reports whether nothing is wrong, or not any more.
func (r *CheckReport) Clean() bool { return r.Found == r.Mended }

// A Finding is something that is not as the invariants want it.
type Finding struct {
	Rule      string `json:"rule"` // H1 to H10; "" if none is broken
	Kind      string `json:"kind"`
	Recipient string `json:"recipient"`
	Where     string `json:"where"` // the document
	Text      string `json:"text"`
	Damage    bool   `json:"damage"` // no repair can know what was there
	Mended    bool   `json:"mended"`
}

func (f *Finding) String() string {
	state := "can be mended"
	switch {
	case f.Mended:
		state = "mended"
	case f.Damage:
		state = "damage"
	case f.Kind == NewerFormatFinding:
		state = "not checked"
	}
	return fmt.Sprintf("%s %s: %s: %s: %s (%s)", f.Rule, f.Kind, f.Recipient, f.Where, f.Text, state)
}
