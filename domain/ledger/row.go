package ledger

import "github.com/messagehub/messagehub/domain"

// A Row is a row of an object, together with properties that depend on the object's other rows.
type Row struct {
	Name domain.ObjectName
	domain.ObjectRow
	IsCurrent bool
	// IsDoubtful is set if the store does not document the order of the object's sequencers. The
	// current row may then be wrong.
	IsDoubtful bool
}

// RowID returns the id by which the API identifies the row.
func (r *Row) RowID() RowID { return RowID{Name: r.Name, Row: r.ID()} }

// IsAccessible reports whether the row is current and its content can be read immediately.
func (r *Row) IsAccessible() bool { return r.IsCurrent && r.ObjectRow.IsAccessible() }

// rowOf returns the Row for the row r of the object o.
func rowOf(o *domain.Object, r domain.ObjectRow) Row {
	return Row{Name: o.Name, ObjectRow: r, IsCurrent: o.Current != nil && o.Current.ID() == r.ID(), IsDoubtful: o.Doubt}
}
