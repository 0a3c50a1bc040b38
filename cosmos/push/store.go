package push

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Options of a Store. The zero value is valid.
type Options struct {
	Retention    time.Duration         // retention of published messages; default 21 days, at least repository.IDRetention
	SegmentBytes int64                 // limit for the bytes of entries in a segment; default 2 GB
	SegmentPages int                   // limit for the pages of each priority in a segment; default 65,536
	Retries      int                   // limit for the retries of all requests of a call; default 24; negative for no retries
	Clock        func() time.Time      // source of the times of entries; default time.Now
	Random       func() uint64         // source of ids and jitter; default: the random source of the operating system
	StoreTraces  bool                  // whether to store the sampled span of each append, in 39 bytes
	Logger       *slog.Logger          // default: none
	Registerer   prometheus.Registerer // default: none
}

// A Store stores streams, cursors, subscriptions, parties, watches and resources in Cosmos DB. It is safe
// for concurrent use.
type Store struct {
	client  *client.Client
	account *client.Database
	streams *azcosmos.ContainerClient
	cursors *azcosmos.ContainerClient
	content repository.Content
	opts    Options
	observe func(domain.Change) // called with each stored change of a watched resource

	appenders appenders
}

var (
	_ repository.Streams     = (*Store)(nil)
	_ repository.Cursors     = (*Store)(nil)
	_ repository.Shards      = (*Store)(nil)
	_ repository.Nodes       = (*Store)(nil)
	_ repository.Definitions = (*Store)(nil)
	_ repository.Parties     = (*Store)(nil)
	_ repository.Watches     = (*Store)(nil)
	_ repository.Resources   = (*Store)(nil)
	_ repository.Changes     = (*Store)(nil)
)

// New returns a Store that uses db for documents and content for large payloads. It sends no request and
// starts no goroutine.
func New(db *client.Database, content repository.Content, opts Options) *Store {
	opts.Retention = max(cmp.Or(opts.Retention, repository.MessageRetention), repository.IDRetention)
	opts.SegmentBytes = cmp.Or(opts.SegmentBytes, 2<<30)
	opts.SegmentPages = cmp.Or(opts.SegmentPages, 65_536)
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	s := &Store{account: db, content: content, opts: opts, observe: func(domain.Change) {}}
	s.streams, s.cursors = container(db, streamsContainer), container(db, cursorsContainer)
	s.client = client.New(db, client.Options{
		Containers: Containers(), Retries: opts.Retries, Formats: newNewerDocuments(&opts),
		Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: opts.Registerer,
	})
	s.appenders.store = s
	return s
}

func container(db *client.Database, name string) *azcosmos.ContainerClient {
	c, err := db.Container(name)
	if err != nil {
		panic(err) // cannot happen, because the name of the container is a constant
	}
	return c
}

// putInBatch adds the write of a document to a batch. With an etag, the write replaces the document if it
// still has this etag; otherwise, it creates the document.
func putInBatch(b *azcosmos.TransactionalBatch, id string, etag azcore.ETag, doc any) {
	if etag == "" {
		b.CreateItem(client.Encode(doc), nil)
		return
	}
	b.ReplaceItem(id, client.Encode(doc), &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag})
}

// isGone is called after a read has not found a document, and reports whether the document does not
// exist. Where reads may be stale, it sends a patch whose condition is always false: the error of the
// patch depends on whether the document exists.
func (s *Store) isGone(ctx context.Context, c *client.Call, container *azcosmos.ContainerClient, key, id string) (bool, error) {
	if !s.account.ReadsMayBeStale() {
		return true, nil
	}
	ops := client.NewPatch(client.DocumentKind{Name: "any"}, "false")
	ops.AppendSet("/kind", "any")
	err := c.Patch(ctx, container, key, id, ops, &struct{}{})
	switch {
	case client.IsNotFound(err):
		return true, nil
	case err == nil, client.StatusOf(err) == http.StatusPreconditionFailed:
		return false, nil
	}
	return false, err
}

// confirmCurrent returns ErrStale if a read of a document in the container cursors was stale. Where reads
// may be stale, it sends a patch that is applied only if the document now has another write id. The patch
// then changes only the etag.
func (s *Store) confirmCurrent(ctx context.Context, c *client.Call, kind client.DocumentKind, key, id, writeID string) error {
	if !s.account.ReadsMayBeStale() {
		return nil
	}
	ops := client.NewPatch(kind, "c.writeId != '"+writeID+"'")
	ops.AppendSet("/kind", kind.Name)
	err := c.Patch(ctx, s.cursors, key, id, ops, &struct{}{})
	switch {
	case err == nil, client.IsNotFound(err):
		return client.ErrStale
	case client.StatusOf(err) == http.StatusPreconditionFailed:
		return nil
	}
	return err
}
