package push

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// readRetries returns up to limit retries or dead letters of a cursor that follow an entry, in order. A
// limit of 0 means no limit.
func (s *Store) readRetries(ctx context.Context, c *client.Call, id domain.CursorID, kind client.DocumentKind, after domain.EntryID, limit int) ([]domain.Retry, error) {
	top := ""
	if limit > 0 {
		top = fmt.Sprintf("TOP %d ", limit)
	}
	from := ""
	if after.Number >= 0 {
		from = retryID(after)
	} else if after.Priority > 0 {
		from = retryPrefix(after.Priority) // sorts before the id of the first entry of the priority
	}
	docs, err := client.All[retryDoc](ctx, c.Query(s.cursors, id.String(),
		"SELECT "+top+"* FROM c WHERE c.kind = @kind AND c.id > @after ORDER BY c.id",
		azcosmos.QueryParameter{Name: "@kind", Value: kind.Name},
		azcosmos.QueryParameter{Name: "@after", Value: from}))
	if err != nil {
		return nil, err
	}
	retries := make([]domain.Retry, len(docs))
	for i, d := range docs {
		if retries[i], err = d.toRetry(); err != nil {
			return nil, err
		}
	}
	return retries, nil
}

// DeadLetters implements [repository.Cursors].
func (s *Store) DeadLetters(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error) {
	return s.listRetries(ctx, "read dead letters", id, deadDocument, after, limit)
}

// Retries implements [repository.Cursors].
func (s *Store) Retries(ctx context.Context, id domain.CursorID, after domain.EntryID, limit int) ([]domain.Retry, error) {
	return s.listRetries(ctx, "read retries", id, retryDocument, after, limit)
}

// listRetries returns up to limit retries or dead letters of a cursor that follow an entry, in order.
func (s *Store) listRetries(ctx context.Context, name string, id domain.CursorID, kind client.DocumentKind, after domain.EntryID, limit int) ([]domain.Retry, error) {
	c := s.client.Begin(name)
	_, err := s.readCursor(ctx, c, id)
	if client.IsNotFound(err) {
		err = domain.Errorf(domain.NotFound, "there is no such cursor")
	}
	var found []domain.Retry
	if err == nil && limit > 0 {
		found, err = s.readRetries(ctx, c, id, kind, after, limit)
	}
	return found, c.Outcome(name+" of cursor "+id.String(), err)
}

// Retry implements [repository.Cursors].
func (s *Store) Retry(ctx context.Context, id domain.CursorID, entry domain.EntryID) (domain.Retry, error) {
	c := s.client.Begin("read retry")
	var doc retryDoc
	_, err := c.Read(ctx, s.cursors, id.String(), retryID(entry), &doc)
	if client.IsNotFound(err) {
		err = domain.Errorf(domain.NotFound, "there is no such retry")
	}
	var found domain.Retry
	if err == nil {
		found, err = doc.toRetry()
	}
	return found, c.Outcome(fmt.Sprintf("read retry %s of cursor %s", entry, id), err)
}
