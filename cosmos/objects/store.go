package objects

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	defaultShards = 16
	maxShards     = 256
)

// Options of a Store. The zero value is valid.
type Options struct {
	Shards     int                               // number of shards of a new bucket, from 1 to 256; default 16
	Limits     domain.ObjectLimits               // limits for the rows in the document of an object; default domain.DefaultObjectLimits
	Retention  domain.ObjectRetention            // default: unlimited
	Retentions map[string]domain.ObjectRetention // retentions of single buckets, by name; they override Retention
	Topic      bool                              // whether changes of the current state of objects are stored for the topic
	Retries    int                               // number of retries that the requests of one call share; default 24, negative: none
	Clock      func() time.Time                  // default time.Now
	Random     func() uint64                     // source of ids and jitter; default: the system's random numbers
	Logger     *slog.Logger                      // default: none
	Registerer prometheus.Registerer             // default: none
}

// A Store stores objects in Cosmos. It is safe for concurrent use.
type Store struct {
	db      *client.Database
	client  *client.Client
	objects *azcosmos.ContainerClient
	opts    Options
	observe func(domain.Change) // receives each change that was stored
	topic   *Topic              // nil: no changes are stored for a topic
	names   int                 // limit for the objects in one shardRequest

	gathering atomic.Int64 // how many more rounds may wait for further requests; see shard.awaitRequests

	mu     sync.Mutex
	counts map[string]int    // numbers of shards by bucket
	shards map[string]*shard // shards by partition key
}

var _ repository.ObjectLedger = (*Store)(nil)

// New returns a Store that uses db. It makes no request and starts no goroutine.
func New(db *client.Database, opts Options) *Store {
	opts.Shards = min(max(cmp.Or(opts.Shards, defaultShards), 1), maxShards)
	opts.Limits = cmp.Or(opts.Limits, domain.DefaultObjectLimits)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	objects, err := db.Container(objectsContainer)
	if err != nil {
		panic(err) // impossible: the name is a constant
	}
	s := &Store{
		db: db,
		client: client.New(db, client.Options{
			Containers: Containers(), Retries: opts.Retries,
			Clock: opts.Clock, Random: opts.Random, Logger: opts.Logger, Registerer: opts.Registerer,
		}),
		objects: objects, opts: opts, names: maxNames, observe: func(domain.Change) {}, counts: make(map[string]int), shards: make(map[string]*shard),
	}
	if opts.Topic {
		s.topic = &Topic{store: s, observe: func(domain.ObjectChange) {}}
		s.names = maxOperations / 2 // a batch may also create a change for each object, so only half as many objects fit
	}
	return s
}

// retention returns the retention of the rows of a bucket's objects.
func (s *Store) retention(bucket string) domain.ObjectRetention {
	if r, has := s.opts.Retentions[bucket]; has {
		return r
	}
	return s.opts.Retention
}

// retentionHorizon returns the time up to which events are too old to create an object in a bucket.
func (s *Store) retentionHorizon(bucket string) time.Time {
	return s.retention(bucket).Horizon(s.opts.Clock())
}

// shardsOf returns the number of shards of a bucket, or 0 if no event of the bucket is stored.
func (s *Store) shardsOf(ctx context.Context, c *client.Call, bucket string) (int, error) {
	s.mu.Lock()
	n := s.counts[bucket]
	s.mu.Unlock()
	if n > 0 {
		return n, nil
	}
	var d bucketDoc
	_, err := c.Read(ctx, s.objects, bucketKey(bucket), shardsID, &d)
	if client.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	s.rememberShards(bucket, d.Shards)
	return d.Shards, nil
}

// rememberShards caches the number of shards of a bucket, which never changes.
func (s *Store) rememberShards(bucket string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[bucket] = n
}

// ensureShards returns the number of shards of a bucket, and stores the number for a new bucket. A crash
// after this write leaves a bucket without objects.
func (s *Store) ensureShards(ctx context.Context, c *client.Call, bucket string) (n int, err error) {
	err = c.Retry(ctx, func() error {
		if n, err = s.shardsOf(ctx, c, bucket); n > 0 || err != nil {
			return err
		}
		d := &bucketDoc{ID: shardsID, PartitionKey: bucketKey(bucket), Kind: bucketDocument.Name, Bucket: bucket, Shards: s.opts.Shards}
		_, err := c.Put(ctx, s.objects, d.PartitionKey, d.ID, "", d)
		switch {
		case client.IsRefused(err):
			return client.ErrStale // another node has stored the number
		case err == nil:
			n = s.opts.Shards
			s.rememberShards(bucket, n)
		}
		return err
	})
	return n, err
}

// readObject reads the document of an object.
func (s *Store) readObject(ctx context.Context, c *client.Call, name domain.ObjectName) (*objectDoc, error) {
	n, err := s.shardsOf(ctx, c, name.Bucket())
	if err != nil {
		return nil, err
	}
	d := &objectDoc{}
	if n > 0 {
		d.PartitionKey = shardKey(name.Bucket(), shardOf(name.Key(), n))
		_, err = c.Read(ctx, s.objects, d.PartitionKey, objectID(name.Key()), d)
	}
	if n == 0 || client.IsNotFound(err) {
		return nil, domain.Errorf(domain.NotFound, "object %q is not known", domain.Shorten(name.Key()))
	}
	return d, err
}

// Object implements [repository.Objects].
func (s *Store) Object(ctx context.Context, name domain.ObjectName) (domain.Object, error) {
	if err := ctx.Err(); err != nil {
		return domain.Object{}, fmt.Errorf("read object: %w", err)
	}
	c := s.client.Begin("read object")
	d, err := s.readObject(ctx, c, name)
	if err != nil {
		return domain.Object{}, c.Outcome("read object", err)
	}
	o, err := d.object()
	return o, c.Outcome("read object", err)
}
