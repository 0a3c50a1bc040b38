package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// A bbolt file has two meta pages, followed by pages of trees. This file checks the pages before bbolt opens the file
// for writing. bbolt validates nothing: on a damaged tree, it may panic in its own goroutine, which ends the process,
// or find a wrong page.
//
// The check must be fast, because it runs at every start: it reads only the parts of pages that contain keys, once, and
// stores one bit per page.
const (
	metaMagic      = 0xED0CDAED
	headerBytes    = 16 // a page header consists of id, flags, count and overflow
	branchFlag     = 1
	leafFlag       = 2
	bucketFlag     = 1 // flag of an element whose value is a bucket
	elementBytes   = 16
	deepestTree    = 64
	largestPage    = 1 << 16
	metaBytes      = 64
	checksummedOff = 56
)

// A treeChecker checks a file. It reads the file without mapping it, so that damage cannot cause a memory fault.
type treeChecker struct {
	file     io.ReaderAt
	pageSize int64
	pages    uint64              // all pages in use have an id below this number
	seen     []uint64            // one bit per page, set after the page was visited
	buffers  [deepestTree][]byte // one page buffer for each depth
}

func wrongTree(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// checkTree reads all pages in use. Every page must contain its own id and be used once. Its keys must be sorted, and
// lie within the bounds of the parent page. The file must be as long as the meta page states.
func checkTree(file io.ReaderAt, pageSize int64) error {
	c := &treeChecker{file: file, pageSize: pageSize}
	root, err := c.readRoot()
	if err != nil {
		return err
	}
	c.seen = make([]uint64, c.pages/64+1)
	return c.checkSubtree(root, nil, nil, 0)
}

// readRoot returns the root in the newest meta page whose checksum is valid.
func (c *treeChecker) readRoot() (root uint64, err error) {
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

// A treePage is one page of a tree.
type treePage struct {
	id     uint64
	leaf   bool
	count  int
	length int64  // length of the page, including its overflow
	first  []byte // the page without its overflow
	at     int64
	file   io.ReaderAt
}

// readBytes returns n bytes of a page. It reads the file only for bytes in the overflow of the page.
func (p *treePage) readBytes(from, n int64) ([]byte, error) {
	if from+n > p.length {
		return nil, wrongTree("page %d: an element extends beyond the page", p.id)
	}
	if from+n <= int64(len(p.first)) {
		return p.first[from : from+n], nil
	}
	b := make([]byte, n)
	if _, err := p.file.ReadAt(b, p.at+from); err != nil {
		return nil, wrongTree("page %d: %v", p.id, err)
	}
	return b, nil
}

// readPage reads a page and marks it as used. depth is its depth in the tree.
func (c *treeChecker) readPage(id uint64, depth int) (*treePage, error) {
	if id < 2 || id >= c.pages {
		return nil, wrongTree("page %d is not one of %d", id, c.pages)
	}
	if depth >= deepestTree {
		return nil, wrongTree("page %d is too deep", id)
	}
	if c.buffers[depth] == nil {
		c.buffers[depth] = make([]byte, c.pageSize)
	}
	b, at := c.buffers[depth], int64(id)*c.pageSize //nolint:gosec // below c.pages
	if _, err := c.file.ReadAt(b, at); err != nil {
		return nil, wrongTree("page %d: %v", id, err)
	}
	flags, overflow := binary.LittleEndian.Uint16(b[8:]), uint64(binary.LittleEndian.Uint32(b[12:]))
	if binary.LittleEndian.Uint64(b) != id || overflow >= largestPage || id+overflow >= c.pages {
		return nil, wrongTree("page %d has another id", id)
	}
	for i := id; i <= id+overflow; i++ {
		if c.seen[i/64]&(1<<(i%64)) != 0 {
			return nil, wrongTree("page %d is used twice", i)
		}
		c.seen[i/64] |= 1 << (i % 64)
	}
	p := &treePage{
		id: id, leaf: flags == leafFlag, count: int(binary.LittleEndian.Uint16(b[10:])),
		length: int64(overflow+1) * c.pageSize, first: b, at: at, file: c.file,
	}
	if !p.leaf && (flags != branchFlag || p.count == 0) {
		return nil, wrongTree("page %d is not part of a tree", id)
	}
	return p, nil
}

// An element is the entry for one key in a page.
type element struct {
	key   []byte
	flags uint32 // only in leaf pages: the flags
	value []byte // only in leaf pages, and only if flags is not 0: the value
	child uint64 // only in branch pages: the id of the child page
}

func (p *treePage) elementAt(i int) (e element, err error) {
	at := int64(headerBytes + i*elementBytes)
	b, err := p.readBytes(at, elementBytes)
	if err != nil {
		return e, err
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint32(b[4*i:])) }
	if !p.leaf {
		e.child = binary.LittleEndian.Uint64(b[8:])
		e.key, err = p.readBytes(at+word(0), word(1))
		return e, err
	}
	e.flags = uint32(word(0)) //nolint:gosec // as it was read
	start, keyLen, valueLen := at+word(1), word(2), word(3)
	if start+keyLen+valueLen > p.length {
		return e, wrongTree("page %d: element %d extends beyond the page", p.id, i)
	}
	if e.key, err = p.readBytes(start, keyLen); err == nil && e.flags != 0 {
		e.value, err = p.readBytes(start+keyLen, valueLen)
	}
	return e, err
}

// checkSubtree checks a page and all pages below it. Their keys must be at least low and, unless high is nil, less than
// high.
func (c *treeChecker) checkSubtree(id uint64, low, high []byte, depth int) error {
	p, err := c.readPage(id, depth)
	if err != nil {
		return err
	}
	leads := !p.leaf // only elements of a branch page lead to other pages
	last := low
	for i := range p.count {
		e, err := p.elementAt(i)
		if err != nil {
			return err
		}
		if order := bytes.Compare(last, e.key); order > 0 || order == 0 && i > 0 || high != nil && bytes.Compare(e.key, high) >= 0 {
			return wrongTree("page %d: its keys are out of order", id)
		}
		last, leads = e.key, leads || e.flags != 0
	}
	for i := 0; leads && i < p.count; i++ {
		if err := c.checkChild(p, i, high, depth); err != nil {
			return err
		}
	}
	return nil
}

// checkChild checks the child page of an element, if it has one.
func (c *treeChecker) checkChild(p *treePage, i int, high []byte, depth int) error {
	e, err := p.elementAt(i)
	if err != nil {
		return err
	}
	switch {
	case !p.leaf:
		if i+1 < p.count {
			next, err := p.elementAt(i + 1)
			if err != nil {
				return err
			}
			high = next.key
		}
		return c.checkSubtree(e.child, e.key, high, depth+1)
	case e.flags == 0:
		return nil
	case e.flags != bucketFlag:
		return wrongTree("page %d: an element is of kind %d", p.id, e.flags)
	case len(e.value) < headerBytes:
		return wrongTree("page %d: a bucket has no root", p.id)
	}
	if root := binary.LittleEndian.Uint64(e.value); root != 0 { // the root 0 means that the page contains the bucket itself
		return c.checkSubtree(root, nil, nil, depth+1)
	}
	return nil
}
