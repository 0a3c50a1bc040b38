package original

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/bench/baseline/internal/items"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

const (
	catalogContainer     = "catalog"
	cabinetContainer     = "cabinet"
	idempotencyContainer = "idempotency"
	bundleContainer      = "bundle"
)

// Provision creates the database, if it is missing, and the containers in it, each with throughput
// request units per second.
func Provision(ctx context.Context, client *azcosmos.Client, database string, throughput int32) error {
	return items.Provision(ctx, client, database, throughput, map[string]string{
		catalogContainer: "/partitionKey", cabinetContainer: "/partitionKey",
		idempotencyContainer: "/partitionKey", bundleContainer: "/recipient",
	})
}

// Options configure a Repository. The zero value is valid for events without payloads.
type Options struct {
	Content        repository.Content // storage of the payloads
	Clock          func() time.Time   // default time.Now
	DrawerCapacity int                // events in a drawer; default 10,000
}

const (
	drawerCapacity    = 10_000
	drawersPerPeek    = 6
	concurrentInserts = 128   // limit for the concurrent inserts of one fill
	eventsPerPage     = 1_000 // results per page of a query
)

// A Repository stores events and bundles. Only one Repository may save to a database. It
// need not be closed, and is safe for concurrent use.
type Repository struct {
	catalog     items.Container
	cabinets    items.Container
	idempotency items.Container
	bundles     items.Container
	options     Options
	groups      domain.Groups
	turn        chan struct{} // a lock that is held during Ingest
}

var (
	_ repository.DataAvailable = (*Repository)(nil)
	_ repository.Bundles       = (*Repository)(nil)
)

// New returns a Repository over the containers that Provision created, without a
// request.
func New(client *azcosmos.Client, database string, o Options) (*Repository, error) {
	o.DrawerCapacity = cmp.Or(o.DrawerCapacity, drawerCapacity)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	r := &Repository{options: o, groups: domain.DefaultGroups(), turn: make(chan struct{}, 1)}
	var errs [4]error
	r.catalog, errs[0] = items.Open(client, database, catalogContainer)
	r.cabinets, errs[1] = items.Open(client, database, cabinetContainer)
	r.idempotency, errs[2] = items.Open(client, database, idempotencyContainer)
	r.bundles, errs[3] = items.Open(client, database, bundleContainer)
	return r, errors.Join(errs[:]...)
}

// Watermark implements [repository.DataAvailable]. All recipients have the same watermark.
func (r *Repository) Watermark(ctx context.Context, _ domain.ActorID) (domain.Sequence, error) {
	var w watermark
	_, err := r.catalog.Read(ctx, watermarkKey, watermarkID, &w)
	return w.SequenceNumber, err
}

// Queues implements [repository.DataAvailable]. It fails, because the original did not know the
// number of waiting events.
func (r *Repository) Queues(context.Context, domain.ActorID) ([]repository.Queue, error) {
	return nil, domain.Errorf(domain.Invalid, "queues: this layout does not count what waits: %w", errors.ErrUnsupported)
}

// originsOf returns the origins of groups.
func (r *Repository) originsOf(groups []domain.Group) []string {
	var origins []string
	for _, origin := range r.groups.Origins() {
		if of, err := r.groups.GroupOf(origin); err == nil && slices.Contains(groups, of) {
			origins = append(origins, origin.String())
		}
	}
	return origins
}
