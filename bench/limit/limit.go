// Package limit sends the minimum of requests that the protocols of the hub need, by bare azcosmos
// calls, in as few round trips as possible and with the same bytes that the hub has stored. It does
// not decode responses, make decisions or retry requests, so no hub with these protocols can be
// faster on the same account and machine.
//
//	Peek     gates and head; catalog; drawers; the pages of all drawers concurrently; commit
//	Save     reserve; all pages concurrently; count; commit
//
// A Stored holds the documents that the hub has written for one cabinet, which are read before the
// measurement. A Limit writes copies of these documents under keys that the hub does not use, so
// the copies do not affect the hub. Each call uses new keys and can be repeated.
package limit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/sync/errgroup"

	"github.com/messagehub/messagehub/domain"
)

// A rawDocument is a stored document without the members that the account adds.
type rawDocument map[string]any

// A Stored holds the documents that the hub has stored for one cabinet.
type Stored struct {
	cabinet domain.CabinetKey

	head    rawDocument
	drawers []rawDocument   // drawers by their ordinals, ascending
	pages   [][]rawDocument // by drawer
	gates   []rawDocument   // empty before the first Peek
	bundles []rawDocument

	copies int
}

// A Limit sends the requests of the hub's protocols over one client.
type Limit struct {
	catalog, cabinets, bundles *azcosmos.ContainerClient
}

// New returns a Limit over c to a database with the hub's containers.
func New(c *azcosmos.Client, database string) (*Limit, error) {
	l := &Limit{}
	for name, container := range map[string]**azcosmos.ContainerClient{
		"catalog": &l.catalog, "cabinet": &l.cabinets, "bundles": &l.bundles,
	} {
		var err error
		if *container, err = c.NewContainer(database, name); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Read reads the documents that the hub has stored for a cabinet.
func (l *Limit) Read(ctx context.Context, cabinet domain.CabinetKey) (*Stored, error) {
	s := &Stored{cabinet: cabinet}
	heads, err := readDocuments(ctx, l.catalog, s.recipientID(), "SELECT * FROM c")
	if err != nil {
		return nil, err
	}
	if len(heads) != 1 {
		return nil, fmt.Errorf("the hub has %d heads for %s: save something first", len(heads), s.recipientID())
	}
	s.head = heads[0]
	if s.drawers, err = readDocuments(ctx, l.cabinets, s.cabinetKey(), drawersQuery); err != nil {
		return nil, err
	}
	for _, drawer := range s.drawers {
		pages, err := readDocuments(ctx, l.cabinets, drawer.id(), pagesQuery)
		if err != nil {
			return nil, err
		}
		s.pages = append(s.pages, pages)
	}
	if s.gates, err = readDocuments(ctx, l.bundles, s.recipientID(), gatesQuery); err != nil {
		return nil, err
	}
	s.bundles, err = readDocuments(ctx, l.bundles, s.recipientID(), "SELECT * FROM c WHERE c.kind = 'bundle'")
	return s, err
}

// The hub's queries.
const (
	gatesQuery   = "SELECT * FROM c WHERE c.kind = 'gate'"
	drawersQuery = "SELECT * FROM c WHERE c.ordinal >= 1 ORDER BY c.ordinal"
	pagesQuery   = "SELECT * FROM c WHERE c.until > 0 ORDER BY c.until"
	entryQuery   = "SELECT TOP 1 * FROM c WHERE c.contentType = @type ORDER BY c.ordinal"
)

func (s *Stored) recipientID() string { return s.cabinet.Recipient.String() }
func (s *Stored) catalogKey() string  { return s.recipientID() + "|" + s.cabinet.Origin.String() }
func (s *Stored) cabinetKey() string  { return s.catalogKey() + "|" + s.cabinet.ContentType.String() }

// copyKey returns a partition key that was not used before.
func (s *Stored) copyKey() string {
	s.copies++
	return s.recipientID() + "|limit|" + strconv.Itoa(s.copies)
}

// withMember returns d with one member changed.
func (d rawDocument) withMember(name string, value any) rawDocument {
	d = maps.Clone(d)
	d[name] = value
	return d
}

func (d rawDocument) id() string { return d["id"].(string) }

func encodeDocument(d rawDocument) []byte {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // a rawDocument was decoded from JSON
	}
	return text
}

// readDocuments returns all documents of a partition that match a query.
func readDocuments(ctx context.Context, c *azcosmos.ContainerClient, key, query string) ([]rawDocument, error) {
	var found []rawDocument
	err := pagesOf(ctx, c, key, query, nil, func(item []byte) error {
		var d rawDocument
		if err := json.Unmarshal(item, &d); err != nil {
			return err
		}
		for _, added := range []string{"_rid", "_self", "_etag", "_attachments", "_ts"} {
			delete(d, added)
		}
		found = append(found, d)
		return nil
	})
	return found, err
}

// pagesOf fetches all result pages of a query, with the account's default page
// size, and calls each for every item.
func pagesOf(ctx context.Context, c *azcosmos.ContainerClient, key, query string, parameters []azcosmos.QueryParameter, each func(item []byte) error) error {
	pager := c.NewQueryItemsPager(query, azcosmos.NewPartitionKeyString(key), &azcosmos.QueryOptions{
		PageSizeHint: -1, QueryParameters: parameters,
	})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := each(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchAll fetches and discards all results of a query.
func fetchAll(ctx context.Context, c *azcosmos.ContainerClient, key, query string, parameters ...azcosmos.QueryParameter) error {
	return pagesOf(ctx, c, key, query, parameters, func([]byte) error { return nil })
}

// Peek sends the requests of a Peek that opens a bundle of all stored events. The
// hub must have peeked before, so that there are a gate and a bundle to copy.
func (l *Limit) Peek(ctx context.Context, s *Stored) error {
	if len(s.gates) == 0 || len(s.bundles) == 0 {
		return errors.New("the hub has not peeked yet: there is no bundle to be copied")
	}
	key := s.copyKey()
	commit := l.bundles.NewTransactionalBatch(azcosmos.NewPartitionKeyString(key))
	commit.CreateItem(encodeDocument(s.bundles[0].withMember("recipient", key)), nil)
	commit.UpsertItem(encodeDocument(s.gates[0].withMember("recipient", key)), nil)

	first, fctx := errgroup.WithContext(ctx)
	first.Go(func() error {
		_, err := l.catalog.ReadItem(fctx, azcosmos.NewPartitionKeyString(s.recipientID()), s.head.id(), nil)
		return err
	})
	first.Go(func() error { return fetchAll(fctx, l.bundles, s.recipientID(), gatesQuery) })
	if err := first.Wait(); err != nil {
		return err
	}
	err := fetchAll(ctx, l.catalog, s.catalogKey(), entryQuery, azcosmos.QueryParameter{Name: "@type", Value: s.cabinet.ContentType.String()})
	if err != nil {
		return err
	}
	if err := fetchAll(ctx, l.cabinets, s.cabinetKey(), drawersQuery); err != nil {
		return err
	}
	pages, pctx := errgroup.WithContext(ctx)
	for _, drawer := range s.drawers {
		pages.Go(func() error { return fetchAll(pctx, l.cabinets, drawer.id(), pagesQuery) })
	}
	if err := pages.Wait(); err != nil {
		return err
	}
	return executeBatch(ctx, l.bundles, commit)
}

// A Save is a Save that is ready to be sent: its bodies are encoded, and the documents that it
// changes exist.
type Save struct {
	key     string // partition key in the catalog
	head    []byte
	pages   map[string][][]byte // by drawer
	cabinet string
	drawers []string
	count   azcosmos.PatchOperations
}

// Prepare prepares a Save that writes copies of all pages of s.
func (l *Limit) Prepare(ctx context.Context, s *Stored) (*Save, error) {
	key := s.copyKey()
	save := &Save{key: key, cabinet: key, pages: make(map[string][][]byte), head: encodeDocument(s.head.withMember("partitionKey", key))}
	if _, err := l.catalog.UpsertItem(ctx, azcosmos.NewPartitionKeyString(key), save.head, nil); err != nil {
		return nil, err
	}
	for i, drawer := range s.drawers {
		drawer = drawer.withMember("partitionKey", key)
		if _, err := l.cabinets.UpsertItem(ctx, azcosmos.NewPartitionKeyString(key), encodeDocument(drawer), nil); err != nil {
			return nil, err
		}
		save.drawers = append(save.drawers, drawer.id())
		to := key + "|" + drawer.id()
		for _, page := range s.pages[i] {
			save.pages[to] = append(save.pages[to], encodeDocument(page.withMember("partitionKey", to)))
		}
	}
	save.count.AppendSet("/count", 10_000)
	save.count.AppendIncrement("/weight", 10_000)
	save.count.AppendSet("/operation", key)
	return save, nil
}

// Save sends the requests of a prepared Save. Each Save can be sent once.
func (l *Limit) Save(ctx context.Context, s *Save) error {
	key := azcosmos.NewPartitionKeyString(s.key)
	reserved, err := l.catalog.ReplaceItem(ctx, key, "head", s.head, nil)
	if err != nil {
		return err
	}
	pages, pctx := errgroup.WithContext(ctx)
	for drawer, bodies := range s.pages {
		for _, body := range bodies {
			pages.Go(func() error {
				_, err := l.cabinets.CreateItem(pctx, azcosmos.NewPartitionKeyString(drawer), body, nil)
				return err
			})
		}
	}
	if err := pages.Wait(); err != nil {
		return err
	}
	count := l.cabinets.NewTransactionalBatch(azcosmos.NewPartitionKeyString(s.cabinet))
	for _, drawer := range s.drawers {
		count.PatchItem(drawer, s.count, nil)
	}
	if err := executeBatch(ctx, l.cabinets, count); err != nil {
		return err
	}
	_, err = l.catalog.ReplaceItem(ctx, key, "head", s.head, &azcosmos.ItemOptions{IfMatchEtag: &reserved.ETag})
	return err
}

func executeBatch(ctx context.Context, c *azcosmos.ContainerClient, batch azcosmos.TransactionalBatch) error {
	answer, err := c.ExecuteTransactionalBatch(ctx, batch, nil)
	if err == nil && !answer.Success {
		err = errors.New("the batch was refused")
	}
	return err
}
