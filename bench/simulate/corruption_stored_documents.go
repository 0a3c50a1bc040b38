package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/cosmos/embedded"
)

// A storedDocuments is a copy of the documents in the account, built from its commits. The corruptor chooses the
// documents to damage from this copy.
type storedDocuments struct {
	mu   sync.Mutex
	docs map[string]storedItem // keyed by container, partition key and id
}

// A storedItem is a document with its container, partition key and id.
type storedItem struct {
	container, key, id string
	fields             map[string]any
}

func newStoredDocuments() *storedDocuments {
	return &storedDocuments{docs: make(map[string]storedItem)}
}

// applyCommit applies the changes that a commit makes in known containers.
func (s *storedDocuments) applyCommit(changes []embedded.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		at := c.Container + "\x00" + string(c.Partition) + "\x00" + c.ID
		if c.JSON == nil {
			delete(s.docs, at)
			continue
		}
		d := storedItem{container: c.Container, id: c.ID}
		numbers := json.NewDecoder(strings.NewReader(string(c.JSON)))
		numbers.UseNumber()
		if err := numbers.Decode(&d.fields); err != nil {
			panic(err) // the engine accepts valid JSON only
		}
		d.key, _ = d.fields[partitionKeyOf(d.container)].(string)
		for name := range d.fields {
			if strings.HasPrefix(name, "_") { // fields that the account adds
				delete(d.fields, name)
			}
		}
		s.docs[at] = d
	}
}

// dropContainer removes the documents of a container.
func (s *storedDocuments) dropContainer(container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.docs, func(_ string, d storedItem) bool { return d.container == container })
}

// partitionKeyOf returns the name of the field that holds the partition key in a container.
func partitionKeyOf(container string) string {
	c, err := containers.Find(container)
	if err != nil {
		panic(err) // commits of unknown containers fail the run earlier
	}
	return c.PartitionKey
}

// documentsOf returns the documents of a recipient. If recipient is a whole partition key, it returns the documents of
// that partition.
func (s *storedDocuments) documentsOf(recipient string) (found []storedItem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	drawers := make(map[string]bool)
	for _, d := range s.docs {
		if d.container == containers.Cabinet && strings.HasPrefix(d.key, recipient+"|") {
			drawers[d.id] = true
		}
	}
	for _, at := range slices.Sorted(maps.Keys(s.docs)) {
		if d := s.docs[at]; d.key == recipient || strings.HasPrefix(d.key, recipient+"|") || drawers[d.key] {
			found = append(found, d)
		}
	}
	return found
}

// kindName returns the kind of a document.
func (d *storedItem) kindName() string {
	switch kind, _ := d.fields["kind"].(string); {
	case d.container == containers.Bundles:
		return cmp.Or(kind, "one of no kind")
	case d.id == "head", d.id == "filter", d.id == "groups", d.id == "sweep":
		return d.id
	case strings.HasPrefix(d.id, "filter-"):
		return "filter"
	case d.container == containers.Catalog:
		return "entry"
	case strings.HasPrefix(d.id, "page-"):
		return "page"
	}
	return "drawer"
}

// blobNames returns the names of the blobs that a document refers to.
func (d *storedItem) blobNames() (names []string) {
	for _, field := range [...]string{"payloads", "object", "list"} {
		if name, _ := d.fields[field].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// A directAccess holds clients that reach the accounts directly, without faults.
type directAccess struct {
	cosmos *azcosmos.Client
	blobs  *azblob.Client
}

func newDirectAccess(sim *simulation) (*directAccess, error) {
	key, err := azcosmos.NewKeyCredential(sim.env.engine.Key())
	if err != nil {
		return nil, err
	}
	once := policy.RetryOptions{MaxRetries: -1}
	cosmos, err := azcosmos.NewClientWithKey(sim.env.engine.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: sim.env.engine.Transport(), Retry: once}})
	if err != nil {
		return nil, err
	}
	shared, err := azblob.NewSharedKeyCredential(sim.env.blobs.Name(), sim.env.blobs.Key())
	if err != nil {
		return nil, err
	}
	blobs, err := azblob.NewClientWithSharedKeyCredential(sim.env.blobs.Endpoint(), shared, &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: sim.env.blobs.Transport(), Retry: once}})
	return &directAccess{cosmos, blobs}, err
}

const database = "messagehub"

// removeDocument deletes a document.
func (b *directAccess) removeDocument(ctx context.Context, d storedItem) error {
	c, err := b.cosmos.NewContainer(database, d.container)
	if err == nil {
		_, err = c.DeleteItem(ctx, azcosmos.NewPartitionKeyString(d.key), d.id, nil)
	}
	return err
}

// putDocument replaces a document.
func (b *directAccess) putDocument(ctx context.Context, d storedItem) error {
	d.fields["id"], d.fields[partitionKeyOf(d.container)] = d.id, d.key
	text, err := json.Marshal(d.fields)
	if err != nil {
		return err
	}
	c, err := b.cosmos.NewContainer(database, d.container)
	if err == nil {
		_, err = c.UpsertItem(ctx, azcosmos.NewPartitionKeyString(d.key), text, nil)
	}
	return err
}

// dropContainer deletes a whole container.
func (b *directAccess) dropContainer(ctx context.Context, container string) error {
	c, err := b.cosmos.NewContainer(database, container)
	if err == nil {
		_, err = c.Delete(ctx, nil)
	}
	return err
}
