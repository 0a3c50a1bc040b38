package ledger

import "github.com/messagehub/messagehub/domain"

// A RowID names a row, or an object. The id of an object stands for its current row.
type RowID = domain.ObjectID

// ParseRowID reads the text of an id. Any text that String does not return is an Invalid error.
func ParseRowID(s string) (RowID, error) { return domain.ParseObjectID(s) }
