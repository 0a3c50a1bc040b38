package probe

import (
	"context"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/messagehub/messagehub/cosmos/client"
)

// Document is the kind of the documents of this package.
var Document = client.DocumentKind{Name: "probe", Format: 1}

const (
	containerName = "catalog"
	documentKey   = "|probe" // no recipient has this id

	// maxAge is the age, by the clock of the account, above which a document counts as abandoned. A run
	// takes less time.
	maxAge = 60 // seconds
)

// A probeDocument is a document that one run writes and deletes.
type probeDocument struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"`
	Kind         string `json:"kind"`
	Writes       int    `json:"writes"`
	client.FormatNumber
}

// DocumentKind returns the kind of the document.
func (*probeDocument) DocumentKind() client.DocumentKind { return Document }

// A writtenDocument contains the members of a probe document that a run reads.
type writtenDocument struct {
	ID      string `json:"id"`
	Written int64  `json:"_ts"` // time of the last write by the clock of the account, in seconds
}

// The rights, by the names of the data actions of Cosmos below
// Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/.
const (
	Create     = "items/create"
	Read       = "items/read"
	Replace    = "items/replace"
	Upsert     = "items/upsert"
	Delete     = "items/delete"
	Query      = "executeQuery"
	ChangeFeed = "readChangeFeed"
)

// A Right is the result of a run for one right.
type Right struct {
	Name string
	// Err is nil if the right is granted. [IsDenied] distinguishes a refusal from other failures.
	Err error
}

// IsDenied reports whether the account has refused a request because of the credential.
func IsDenied(err error) bool {
	if err == nil {
		return false
	}
	status := client.StatusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// A Probe tests the rights of the credential of a database.
type Probe struct {
	client  *client.Client
	catalog *azcosmos.ContainerClient
	clock   func() time.Time
}

// Options of a Probe. The zero value is valid.
type Options struct {
	Clock  func() time.Time // source of the time from which the change feed is read; default time.Now
	Random func() uint64    // source of document ids; default: the system's random numbers
}

// New returns a Probe. It makes no request.
func New(db *client.Database, opts Options) (*Probe, error) {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	catalog, err := db.Container(containerName)
	if err != nil {
		return nil, err
	}
	return &Probe{client: client.New(db, client.Options{Retries: 3, Clock: opts.Clock, Random: opts.Random}), catalog: catalog, clock: opts.Clock}, nil
}

// A Result is the result of a run.
type Result struct {
	Rights  []Right // the tested rights, in order of the tests
	Removed int     // number of documents of earlier runs that were removed
	Left    bool    // the document of this run may still exist, because it could not be deleted
}

// Run tests the rights in names.
func (p *Probe) Run(ctx context.Context, names ...string) Result {
	r := &probeRun{probe: p, call: p.client.Begin("test rights"), doc: probeDocument{ID: p.client.NewID(), PartitionKey: documentKey, Kind: Document.Name, Writes: 1}}
	tests := map[string]func(context.Context) error{
		Query: r.queryDocuments, Create: r.createDocument, Read: r.readDocument, Replace: r.replaceDocument, Upsert: r.upsertDocument, ChangeFeed: r.readChangeFeed, Delete: r.deleteDocuments,
	}
	// Upsert runs before Create, because an upsert that creates costs half as much as one that replaces.
	// Create then fails because the document exists, which proves the right, too.
	for _, name := range [...]string{Query, Upsert, Create, Read, Replace, ChangeFeed, Delete} {
		for _, wanted := range names {
			if wanted == name {
				r.result.Rights = append(r.result.Rights, Right{name, tests[name](ctx)})
			}
		}
	}
	return r.result
}

// A probeRun is one use of a Probe.
type probeRun struct {
	probe  *Probe
	call   *client.Call
	doc    probeDocument
	etag   azcore.ETag
	now    int64             // current time by the clock of the account, in seconds; 0: unknown
	others []writtenDocument // documents that the query has found
	result Result
}

// queryDocuments lists the documents of the partition.
func (r *probeRun) queryDocuments(ctx context.Context) error {
	found, err := client.All[writtenDocument](ctx, r.call.Query(r.probe.catalog, documentKey, "SELECT c.id, c._ts FROM c"))
	for _, d := range found {
		r.others = append(r.others, *d)
	}
	return err
}

func (r *probeRun) createDocument(ctx context.Context) error {
	etag, err := r.call.Put(ctx, r.probe.catalog, documentKey, r.doc.ID, "", &r.doc)
	if err == nil {
		r.etag, r.result.Left = etag, true
	}
	return ignoreExpected(err)
}

func (r *probeRun) readDocument(ctx context.Context) error {
	var written writtenDocument
	etag, err := r.call.Read(ctx, r.probe.catalog, documentKey, r.doc.ID, &written)
	if err == nil {
		r.etag, r.now = etag, written.Written
	}
	return ignoreExpected(err)
}

func (r *probeRun) replaceDocument(ctx context.Context) error {
	r.doc.Writes++
	etag := r.etag
	if etag == "" {
		etag = "none" // an etag that no document has
	}
	_, err := r.call.Put(ctx, r.probe.catalog, documentKey, r.doc.ID, etag, &r.doc)
	return ignoreExpected(err)
}

// upsertDocument upserts the document in a batch, as the hub does.
func (r *probeRun) upsertDocument(ctx context.Context) error {
	r.doc.Writes++
	_, err := r.call.Batch(ctx, r.probe.catalog, documentKey, false, func(b *azcosmos.TransactionalBatch) {
		b.UpsertItem(client.Encode(&r.doc), nil)
	})
	r.result.Left = r.result.Left || err == nil
	return ignoreExpected(err)
}

// readChangeFeed reads the change feed of the first range of partitions from the current time on, which
// contains at most one change.
func (r *probeRun) readChangeFeed(ctx context.Context) error {
	const what = "read the change feed of " + containerName
	ranges, err := r.probe.catalog.ReadFeedRanges(ctx, nil)
	if err != nil || len(ranges) == 0 {
		return client.Classify(what, err)
	}
	now := r.probe.clock()
	_, err = r.probe.catalog.ReadChangeFeed(ctx, &azcosmos.ChangeFeedOptions{FeedRange: &ranges[0], StartFrom: &now, MaxItemCount: 1})
	return client.Classify(what, err)
}

// deleteDocuments deletes the document of the run, and abandoned documents of earlier runs.
func (r *probeRun) deleteDocuments(ctx context.Context) error {
	if err := r.call.DeleteIfExists(ctx, r.probe.catalog, documentKey, r.doc.ID); err != nil {
		return err
	}
	r.result.Left = false
	for _, other := range r.others {
		if r.now == 0 || r.now-other.Written < maxAge {
			continue
		}
		if err := r.call.DeleteIfExists(ctx, r.probe.catalog, documentKey, other.ID); err != nil {
			return err
		}
		r.result.Removed++
	}
	return nil
}

// ignoreExpected returns nil for an error that proves the right: the document does not exist, already
// exists, or has another etag.
func ignoreExpected(err error) error {
	switch {
	case client.IsNotFound(err), client.IsRefused(err):
		return nil
	default:
		return err
	}
}
