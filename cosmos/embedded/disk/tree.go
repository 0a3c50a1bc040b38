package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// What follows is known of the file format of bbolt: two meta pages, then
// pages of trees. It is read here once more, before bbolt opens the file for
// writing, because bbolt trusts what it finds: a damaged tree can end the
// process, from a goroutine where nobody can catch the panic.
const (
	metaMagic      = 0xED0CDAED
	headerBytes    = 16 // of a page: its id, flags, count and overflow
	branchFlag     = 1
	leafFlag       = 2
	bucketFlag     = 1 // of an element
	elementBytes   = 16
	deepestTree    = 64
	largestPage    = 1 << 16
	metaBytes      = 64
	checksummedOff = 56
)

// A treeCheck reads the file instead of mapping it, so that no damage can
// fault.
type treeCheck struct {
	file     io.ReaderAt
	pageSize int64
	pages    uint64 // ids from here on are not in use
	seen     map[uint64]bool
}

func wrongTree(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// checkTree walks through all pages that are in use: every page is where it
// says it is, is used once, and has its keys in order and between those that
// the page above it promises.
func checkTree(file io.ReaderAt, pageSize int64) error {
	c := &treeCheck{file: file, pageSize: pageSize, seen: map[uint64]bool{}}
	root, err := c.root()
	if err != nil {
		return err
	}
	return c.page(root, nil, nil, 0)
}

// root finds the newer meta that is whole.
func (c *treeCheck) root() (root uint64, err error) {
	newest, found := uint64(0), false
	for i := range int64(2) {
		b := make([]byte, metaBytes)
		if _, err := c.file.ReadAt(b, i*c.pageSize+headerBytes); err != nil {
			return 0, err
		}
		sum := fnv.New64a()
		_, _ = sum.Write(b[:checksummedOff]) // never fails
		txid := binary.LittleEndian.Uint64(b[48:])
		if binary.LittleEndian.Uint32(b) != metaMagic || sum.Sum64() != binary.LittleEndian.Uint64(b[checksummedOff:]) || found && txid < newest {
			continue
		}
		newest, found = txid, true
		root, c.pages = binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[40:])
	}
	if !found {
		return 0, wrongTree("it has no valid meta page")
	}
	return root, nil
}

// read returns a page with its overflow, which this method accounts for.
func (c *treeCheck) read(id uint64) ([]byte, error) {
	if id < 2 || id >= c.pages {
		return nil, wrongTree("page %d is not one of %d", id, c.pages)
	}
	head := make([]byte, headerBytes)
	if _, err := c.file.ReadAt(head, int64(id)*c.pageSize); err != nil { //nolint:gosec // below c.pages
		return nil, wrongTree("page %d: %v", id, err)
	}
	overflow := uint64(binary.LittleEndian.Uint32(head[12:]))
	if binary.LittleEndian.Uint64(head) != id || overflow >= largestPage || id+overflow >= c.pages {
		return nil, wrongTree("page %d is not where it says", id)
	}
	for i := id; i <= id+overflow; i++ {
		if c.seen[i] {
			return nil, wrongTree("page %d is used twice", i)
		}
		c.seen[i] = true
	}
	p := make([]byte, int64(overflow+1)*c.pageSize)
	if _, err := c.file.ReadAt(p, int64(id)*c.pageSize); err != nil && !errors.Is(err, io.EOF) { //nolint:gosec // as above
		return nil, wrongTree("page %d: %v", id, err)
	}
	return p, nil
}

// page checks a page and those below it. Its keys are from low on, and below
// high unless that is nil.
func (c *treeCheck) page(id uint64, low, high []byte, depth int) error {
	p, err := c.read(id)
	if err != nil {
		return err
	}
	flags, count := binary.LittleEndian.Uint16(p[8:]), int(binary.LittleEndian.Uint16(p[10:]))
	if flags != branchFlag && flags != leafFlag || flags == branchFlag && count == 0 || depth > deepestTree ||
		headerBytes+count*elementBytes > len(p) {
		return wrongTree("page %d is not part of a tree", id)
	}
	var last []byte
	keys := make([][]byte, count)
	for i := range count {
		key, err := c.key(p, i, flags)
		if err != nil {
			return wrongTree("page %d, element %d: %v", id, i, err)
		}
		if bytes.Compare(key, low) < 0 || high != nil && bytes.Compare(key, high) >= 0 || i > 0 && bytes.Compare(last, key) >= 0 {
			return wrongTree("page %d: its keys are out of order", id)
		}
		keys[i], last = key, key
	}
	for i := range count {
		if err := c.below(p, i, flags, keys, high, depth); err != nil {
			return err
		}
	}
	return nil
}

// key returns the key of an element, after a look at where it ends.
func (c *treeCheck) key(p []byte, i int, flags uint16) ([]byte, error) {
	at := headerBytes + i*elementBytes
	e := p[at:]
	pos, keyLen, valueLen := uint64(binary.LittleEndian.Uint32(e)), uint64(binary.LittleEndian.Uint32(e[4:])), uint64(0)
	if flags == leafFlag {
		pos, keyLen, valueLen = uint64(binary.LittleEndian.Uint32(e[4:])), uint64(binary.LittleEndian.Uint32(e[8:])), uint64(binary.LittleEndian.Uint32(e[12:]))
	}
	start := uint64(at) + pos //nolint:gosec // within a page
	if start+keyLen+valueLen > uint64(len(p)) {
		return nil, errors.New("it goes beyond the page")
	}
	return p[start : start+keyLen], nil
}

// below follows an element to the page it leads to, if it does.
func (c *treeCheck) below(p []byte, i int, flags uint16, keys [][]byte, high []byte, depth int) error {
	e := p[headerBytes+i*elementBytes:]
	if flags == branchFlag {
		if i+1 < len(keys) {
			high = keys[i+1]
		}
		return c.page(binary.LittleEndian.Uint64(e[8:]), keys[i], high, depth+1)
	}
	switch kind := binary.LittleEndian.Uint32(e); kind {
	case 0:
		return nil
	case bucketFlag:
	default:
		return wrongTree("an element is of kind %d", kind)
	}
	value := e[binary.LittleEndian.Uint32(e[4:])+binary.LittleEndian.Uint32(e[8:]):][:binary.LittleEndian.Uint32(e[12:])]
	if len(value) < headerBytes {
		return wrongTree("a bucket has no root")
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 { // 0: small enough to lie right here
		return c.page(root, nil, nil, depth+1)
	}
	return nil
}
