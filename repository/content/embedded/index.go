package embedded

import (
	"crypto/rand"
	"fmt"
	"hash/maphash"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tidwall/btree"
)

// A blobIndex contains all versions. While the lock of a name is held, index and store agree
// about it.
type blobIndex struct {
	making     sync.Mutex // held while a container is created
	mu         sync.Mutex
	containers map[string]*blobContainer
}

// A blobContainer is a container of blobs, in the order of their names.
type blobContainer struct {
	about *version
	blobs *btree.BTreeG[*version] // safe for concurrent use

	// locks guard the blobs: changing a blob or opening its content requires the lock of its
	// name. Several names share a lock.
	locks [64]sync.RWMutex
}

var seed = maphash.MakeSeed()

func newBlobContainer(about *version) *blobContainer {
	return &blobContainer{about: about, blobs: btree.NewBTreeG(func(a, b *version) bool { return a.Name < b.Name })}
}

func (c *blobContainer) lockOf(blob string) *sync.RWMutex {
	return &c.locks[maphash.String(seed, blob)%uint64(len(c.locks))]
}

// findBlob returns the version of a name, or nil.
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

// addContainer adds a loaded container.
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

// newETag returns a new, unique etag.
func newETag() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return fmt.Sprintf(`"0x8D%X"`, b)
}

var containerName = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)

func checkContainer(name string) error {
	const minLength, maxLength = 3, 63
	if len(name) < minLength || len(name) > maxLength || !containerName.MatchString(name) {
		return newBlobError(400, "InvalidResourceName",
			"container %.70q: want %d to %d characters of a-z 0-9, with single dashes between them", name, minLength, maxLength)
	}
	return nil
}

// checkBlob refuses names that the XML of a list cannot represent.
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
