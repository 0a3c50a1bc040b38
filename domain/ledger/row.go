package ledger

import "github.com/messagehub/messagehub/domain"

// A Row is a row of an object, with the properties that depend on the other rows.
type Row struct {
	Name domain.ObjectName
	domain.ObjectRow
	IsCurrent bool
	// IsDoubtful says that no store documents the order of the sequencers of the object.
	IsDoubtful bool
}

// RowID returns the id of the row in the API.
func (r *Row) RowID() RowID { return RowID{Name: r.Name, Row: r.ID()} }

// IsAccessible reports whether the row is the current one, and its content can be read
// immediately.
func (r *Row) IsAccessible() bool { return r.IsCurrent && r.ObjectRow.IsAccessible() }

// rowOf returns a row of an object.
func rowOf(o *domain.Object, r domain.ObjectRow) Row {
	return Row{Name: o.Name, ObjectRow: r, IsCurrent: o.Current != nil && o.Current.ID() == r.ID(), IsDoubtful: o.Doubt}
}
