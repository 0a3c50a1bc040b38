package ledger

import (
	"context"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// maxPaired is the maximum number of rows of an object that Pairs accepts.
const maxPaired = 10_000

// Find returns the row with the given id. It fails with NotFound if the row does not exist.
func (s *Service) Find(ctx context.Context, id RowID) (Row, error) {
	o, r, err := s.findRow(ctx, id)
	if err != nil {
		return Row{}, err
	}
	return rowOf(o, r), nil
}

// findRow returns the row with the given id, and its object.
func (s *Service) findRow(ctx context.Context, id RowID) (*domain.Object, domain.ObjectRow, error) {
	o, err := s.Objects.Object(ctx, id.Name)
	if err != nil {
		return nil, domain.ObjectRow{}, err
	}
	isOfObject := id.Row == (domain.ObjectRowID{})
	if o.Current != nil && (isOfObject || o.Current.ID() == id.Row) {
		return &o, *o.Current, nil
	}
	if isOfObject {
		return &o, domain.ObjectRow{}, domain.Errorf(domain.NotFound, "object %q has no current row", domain.Shorten(id.Name.Key()))
	}
	for _, r := range o.Rows {
		if r.ID() == id.Row {
			return &o, r, nil
		}
	}
	r, err := s.Objects.Row(ctx, id.Name, id.Row)
	return &o, r, err
}

// History returns a page of the rows of the object to which id belongs, the newest first. It fails
// with NotFound if the row id does not exist.
func (s *Service) History(ctx context.Context, id RowID, limit int, token string) (Page, error) {
	if limit == 0 {
		limit = DefaultPage
	}
	if limit < 1 || limit > MaxPage {
		return Page{}, domain.Errorf(domain.Invalid, "limit: want 1 to %d, got %d", MaxPage, limit)
	}
	at, err := parseToken(token, "history of "+id.String())
	if err != nil {
		return Page{}, err
	}
	below, err := at.Below.domainOrder()
	if err != nil {
		return Page{}, err
	}
	o, rows, err := s.readHistory(ctx, id, below, limit+1)
	if err != nil {
		return Page{}, err
	}
	page := Page{Rows: make([]Row, 0, limit)}
	for i := range rows[:min(limit, len(rows))] {
		page.Rows = append(page.Rows, rowOf(o, rows[i]))
	}
	if len(rows) > limit {
		at.Below = newRowOrder(rows[limit-1].Order())
		page.Next = at.encodeToken()
	}
	return page, nil
}

// readHistory returns an object, and up to limit of its rows that are lower than below, the newest
// first.
func (s *Service) readHistory(ctx context.Context, id RowID, below domain.ObjectOrder, limit int) (*domain.Object, []domain.ObjectRow, error) {
	o, _, err := s.findRow(ctx, id)
	isOfDeletedObject := o != nil && id.Row == (domain.ObjectRowID{})
	if err != nil && !isOfDeletedObject {
		return nil, nil, err
	}
	rows, err := s.Objects.History(ctx, id.Name, below, limit)
	return o, rows, err
}

// A Pair is an entry of an object's history in paired mode: a Created event and the Deleted event
// that ends it. One of the two may be nil.
type Pair struct {
	Created, Deleted *Row
	Duplicates       int64
	Reordered        int64
}

// Pairs returns an object's history in paired mode, the newest pair first. id is the id of the
// object or of one of its rows. Pairs fails with Invalid if the object has more than 10,000 rows.
func (s *Service) Pairs(ctx context.Context, id RowID) ([]Pair, error) {
	o, rows, err := s.readHistory(ctx, id, domain.ObjectOrder{}, maxPaired+1)
	if err != nil {
		return nil, err
	}
	if len(rows) > maxPaired {
		return nil, domain.Errorf(domain.Invalid, "paired: the object has more than %d rows, whose pairs are not shown; leave paired out, and read its history by pages", maxPaired)
	}
	slices.Reverse(rows)
	found := domain.PairRows(rows)
	pairs := make([]Pair, len(found))
	for i, p := range found {
		pair := &pairs[len(found)-1-i]
		*pair = Pair{Duplicates: p.Duplicates(), Reordered: p.Reordered()}
		if p.Created != nil {
			r := rowOf(o, *p.Created)
			pair.Created = &r
		}
		if p.Deleted != nil {
			r := rowOf(o, *p.Deleted)
			pair.Deleted = &r
		}
	}
	return pairs, nil
}
