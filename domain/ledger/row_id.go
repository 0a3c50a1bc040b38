package ledger

import "github.com/messagehub/messagehub/domain"

// A RowID identifies a row or an object. The id of an object selects its current row.
type RowID = domain.ObjectID

// ParseRowID parses the text that RowID.String returns. It fails with Invalid for any other text.
func ParseRowID(s string) (RowID, error) { return domain.ParseObjectID(s) }
