package ledger

import "github.com/messagehub/messagehub/domain"

// A RowID identifies a row or an object. The id of an object selects its current row.
type RowID = domain.ObjectID

// ParseRowID reads the text of an id. It fails with Invalid for a text that String never returns.
func ParseRowID(s string) (RowID, error) { return domain.ParseObjectID(s) }
