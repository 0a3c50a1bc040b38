package single

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// container is the name of the only container.
const container = "single"

// Provision creates the database, if it is missing, and its container with
// throughput request units per second.
func Provision(ctx context.Context, client *azcosmos.Client, database string, throughput int32) error {
	return items.Provision(ctx, client, database, throughput, map[string]string{container: "/recipient"})
}

// Options configure a Repository. The zero value is valid for events without payloads.
type Options struct {
	Content repository.Content // storage of the payloads
	Clock   func() time.Time   // default time.Now
}

// A Repository stores events and bundles. It need not be closed, and is safe for
// concurrent use.
type Repository struct {
	items   items.Container
	options Options
	groups  domain.Groups
}

var (
	_ repository.DataAvailable = (*Repository)(nil)
	_ repository.Bundles       = (*Repository)(nil)
)

// New returns a Repository over the container that Provision created, without a
// request.
func New(client *azcosmos.Client, database string, o Options) (*Repository, error) {
	c, err := items.Open(client, database, container)
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Repository{items: c, options: o, groups: domain.DefaultGroups()}, nil
}

// readQueue reads the queue of a recipient. The queue is empty if no event was ever saved for the
// recipient.
func (r *Repository) readQueue(ctx context.Context, recipient domain.ActorID) (*queueItem, error) {
	q := &queueItem{ID: queueID, Recipient: recipient.String(), Groups: make(map[string]groupGate)}
	_, err := r.items.Read(ctx, q.Recipient, queueID, q)
	return q, err
}

// putInto adds the replacement of the queue to a batch. The batch fails if the queue has changed since
// it was read.
func (q *queueItem) putInto(b *items.Batch) {
	stored := *q
	stored.ETag = ""
	if q.ETag == "" {
		b.Create(&stored)
	} else {
		b.Replace(queueID, &stored, q.ETag)
	}
}

// Queues implements [repository.DataAvailable].
func (r *Repository) Queues(ctx context.Context, recipient domain.ActorID) ([]repository.Queue, error) {
	q, err := r.readQueue(ctx, recipient)
	if err != nil {
		return nil, err
	}
	var queues []repository.Queue
	for _, group := range r.groups.All() {
		one := repository.Queue{Group: group, Waiting: q.backlogOf([]string{group.String()}, nil, 0)}
		if open := q.Groups[group.String()].Open; open != "" {
			b, err := r.readBundle(ctx, recipient, open)
			if err != nil {
				return nil, err
			}
			one.Open = &b
		}
		queues = append(queues, one)
	}
	return queues, nil
}

// Watermark implements [repository.DataAvailable].
func (r *Repository) Watermark(ctx context.Context, recipient domain.ActorID) (domain.Sequence, error) {
	q, err := r.readQueue(ctx, recipient)
	return q.Last, err
}
