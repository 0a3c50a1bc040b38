package embedded

import (
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/tidwall/btree"
)

// A blobIndex contains the current versions of all blobs. Whenever the lock of a name is held, the index and the store
// have the same version.
type blobIndex struct {
	making     sync.Mutex // locked while a container is created, changed or deleted
	mu         sync.Mutex
	containers map[string]*blobContainer
}

// A blobContainer is a container with its blobs, sorted by name.
type blobContainer struct {
	key   string                  // unique in the process; a container that is deleted and created again gets a new key
	blobs *btree.BTreeG[*version] // safe for concurrent use

	// locks guard the blobs. A caller that changes a blob or opens its content must hold the lock for the blob's name.
	// Several names share a lock.
	locks [64]sync.RWMutex

	about     atomic.Pointer[version]
	isDeleted bool // reading requires one of locks; writing requires all of them
}

var seed = maphash.MakeSeed()

func newBlobContainer(about *version) *blobContainer {
	c := &blobContainer{key: rand.Text(), blobs: btree.NewBTreeG(func(a, b *version) bool { return a.Name < b.Name })}
	c.about.Store(about)
	return c
}

// uploadKey returns the key of a blob's uncommitted blocks.
func (c *blobContainer) uploadKey(blob string) string { return c.key + "/" + blob }

func (c *blobContainer) lockOf(blob string) *sync.RWMutex {
	return &c.locks[maphash.String(seed, blob)%uint64(len(c.locks))]
}

// lockBlob locks a blob for a change. It fails if the container was deleted.
func (c *blobContainer) lockBlob(blob string) (unlock func(), err error) {
	lock := c.lockOf(blob)
	lock.Lock()
	if c.isDeleted {
		lock.Unlock()
		return nil, containerNotFound()
	}
	return lock.Unlock, nil
}

// lockBlobToRead locks a blob so that no other caller changes it. It fails if the container was deleted.
func (c *blobContainer) lockBlobToRead(blob string) (unlock func(), err error) {
	lock := c.lockOf(blob)
	lock.RLock()
	if c.isDeleted {
		lock.RUnlock()
		return nil, containerNotFound()
	}
	return lock.RUnlock, nil
}

// lockAll locks all blobs of a container for a change. It fails if the container was deleted.
func (c *blobContainer) lockAll() (unlock func(), err error) {
	for i := range c.locks {
		c.locks[i].Lock()
	}
	unlock = func() {
		for i := range c.locks {
			c.locks[i].Unlock()
		}
	}
	if c.isDeleted {
		unlock()
		return nil, containerNotFound()
	}
	return unlock, nil
}

func containerNotFound() error {
	return newBlobError(http.StatusNotFound, "ContainerNotFound", "the container does not exist")
}

// findBlob returns the current version of a blob, or nil if none exists.
func (c *blobContainer) findBlob(name string) *version {
	v, _ := c.blobs.Get(&version{Name: name})
	return v
}

func (i *blobIndex) findContainer(name string) (*blobContainer, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c, ok := i.containers[name]
	return c, ok
}

// addContainer adds a container that was loaded from the store.
func (i *blobIndex) addContainer(name string, about *version, blobs []*version) error {
	c := newBlobContainer(about)
	for _, v := range blobs {
		c.blobs.Set(v)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.containers == nil {
		i.containers = map[string]*blobContainer{}
	}
	i.containers[name] = c
	return nil
}

func (i *blobIndex) removeContainer(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.containers, name)
}

// newETag returns a new, unique etag.
func newETag() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return fmt.Sprintf(`"0x8D%X"`, b)
}

var containerName = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)

// isSystemContainer reports whether Azure reserves name for a system container. This account has no system containers.
func isSystemContainer(name string) bool {
	return slices.Contains([]string{"$root", "$logs", "$web", "$blobchangefeed"}, name)
}

func checkContainer(name string) error {
	const minLength, maxLength = 3, 63
	const want = "container %.70q: want %d to %d characters of a-z 0-9, with single dashes between them"
	switch {
	case len(name) < minLength || len(name) > maxLength:
		return newBlobError(400, "OutOfRangeInput",
			want+". The specified resource name length is not within the permissible limits.", name, minLength, maxLength)
	case !containerName.MatchString(name):
		return newBlobError(400, "InvalidResourceName",
			want+". The specified resource name contains invalid characters.", name, minLength, maxLength)
	}
	return nil
}

// checkBlob returns an error for a blob name that is too long or that XML cannot represent.
func checkBlob(name string) error {
	const maxLength = 1024
	inXML := func(r rune) bool { return r >= 0x20 && r != 0xFFFE && r != 0xFFFF && r != utf8.RuneError }
	switch {
	case name == "":
		return newBlobError(400, "InvalidUri", "the blob's name is empty")
	case utf8.RuneCountInString(name) > maxLength:
		return newBlobError(400, "InvalidUri", "the blob's name has more than %d characters", maxLength)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !inXML(r) }):
		return newBlobError(400, "InvalidUri", "the blob's name %.70q has characters that a name cannot have", name)
	}
	return nil
}
