package ledger

import "github.com/messagehub/messagehub/domain"

// A RowID names a row, or an object: then it stands for the current row, whichever that is.
type RowID = domain.ObjectID

// ParseRowID reads the text of an id. What String returns for no id is an Invalid error.
func ParseRowID(s string) (RowID, error) { return domain.ParseObjectID(s) }
