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

// A shelf is what lies in the account, as its commits have told, for somebody who
// goes there behind the back of all hubs.
type shelf struct {
	mu   sync.Mutex
	docs map[string]document // by container, partition and id
}

// A document lies in a container.
type document struct {
	container, key, id string
	fields             map[string]any
}

func newShelf() *shelf { return &shelf{docs: make(map[string]document)} }

// put takes in a commit, whose containers are known.
func (s *shelf) put(changes []embedded.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		at := c.Container + "\x00" + string(c.Partition) + "\x00" + c.ID
		if c.JSON == nil {
			delete(s.docs, at)
			continue
		}
		d := document{container: c.Container, id: c.ID}
		numbers := json.NewDecoder(strings.NewReader(string(c.JSON)))
		numbers.UseNumber()
		if err := numbers.Decode(&d.fields); err != nil {
			panic(err) // the engine takes nothing else
		}
		d.key, _ = d.fields[keyOf(d.container)].(string)
		for name := range d.fields {
			if strings.HasPrefix(name, "_") { // what the account says itself
				delete(d.fields, name)
			}
		}
		s.docs[at] = d
	}
}

// forget takes a container off the shelf.
func (s *shelf) forget(container string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.docs, func(_ string, d document) bool { return d.container == container })
}

// keyOf names the field by which the documents of a container are partitioned.
func keyOf(container string) string {
	c, err := containers.Find(container)
	if err != nil {
		panic(err) // no commit of another container is put on a shelf
	}
	return c.PartitionKey
}

// documentsOf returns the documents of a recipient, or those of a partition.
func (s *shelf) documentsOf(recipient string) (found []document) {
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

// kind names what a document is.
func (d *document) kind() string {
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

// objects returns the names of the blobs that a document names.
func (d *document) objects() (names []string) {
	for _, field := range [...]string{"payloads", "object", "list"} {
		if name, _ := d.fields[field].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// A backDoor is a way to the accounts that no hub and no weather has a say in.
type backDoor struct {
	cosmos *azcosmos.Client
	blobs  *azblob.Client
}

func newBackDoor(w *world) (*backDoor, error) {
	key, err := azcosmos.NewKeyCredential(w.engine.Key())
	if err != nil {
		return nil, err
	}
	once := policy.RetryOptions{MaxRetries: -1}
	cosmos, err := azcosmos.NewClientWithKey(w.engine.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: w.engine.Transport(), Retry: once}})
	if err != nil {
		return nil, err
	}
	shared, err := azblob.NewSharedKeyCredential(w.blobs.Name(), w.blobs.Key())
	if err != nil {
		return nil, err
	}
	blobs, err := azblob.NewClientWithSharedKeyCredential(w.blobs.Endpoint(), shared, &azblob.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: w.blobs.Transport(), Retry: once}})
	return &backDoor{cosmos, blobs}, err
}

const database = "messagehub"

// remove takes a document away.
func (b *backDoor) remove(ctx context.Context, d document) error {
	c, err := b.cosmos.NewContainer(database, d.container)
	if err == nil {
		_, err = c.DeleteItem(ctx, azcosmos.NewPartitionKeyString(d.key), d.id, nil)
	}
	return err
}

// put has a document be what it is not.
func (b *backDoor) put(ctx context.Context, d document) error {
	d.fields["id"], d.fields[keyOf(d.container)] = d.id, d.key
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

// drop takes a whole container away.
func (b *backDoor) drop(ctx context.Context, container string) error {
	c, err := b.cosmos.NewContainer(database, container)
	if err == nil {
		_, err = c.Delete(ctx, nil)
	}
	return err
}
