package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// A Census contains the totals that Check has counted.
type Census struct {
	Databases, Containers, Documents int
	Bytes                            int64 // bytes of all documents
	Problems                         int
}

// Check reads the whole store and calls report for each inconsistency. It verifies the checksums of documents, and that
// documents and index entries match each other.
func (e *Engine) Check(report func(problem string)) (Census, error) {
	var census Census
	err := e.store.View(func(r disk.Reader) error {
		for _, db := range e.Databases() {
			census.Databases++
			for _, c := range db.containers {
				census.Containers++
				k := &accountChecker{r: r, c: c, census: &census, used: map[Partition]int64{}}
				k.report = func(format string, args ...any) {
					census.Problems++
					report(fmt.Sprintf("database %q, container %q: ", db.ID, c.ID) + fmt.Sprintf(format, args...))
				}
				k.checkAll()
			}
		}
		return nil
	})
	return census, err
}

type accountChecker struct {
	r      disk.Reader
	c      *Container
	census *Census
	report func(format string, args ...any)
	used   map[Partition]int64 // bytes of documents, by partition
	large  int
}

func (k *accountChecker) checkAll() {
	documents := k.scanKeys('D', k.checkDocument)
	for name, entries := range map[string]int{
		"id index": k.scanKeys('I', k.checkIDEntry), "change feed": k.scanKeys('L', k.checkChangeEntry),
	} {
		if entries != documents {
			k.report("%d documents, but %d entries in the %s", documents, entries, name)
		}
	}
	if n := k.scanKeys('U', k.checkUniqueEntry); n != documents*len(k.c.unique) {
		k.report("%d documents with %d unique keys each, but %d entries for them", documents, len(k.c.unique), n)
	}
	if n := k.scanKeys('B', func(_, _ []byte) {}); n != k.large {
		k.report("%d large documents, but the bodies of %d", k.large, n)
	}
	k.scanKeys('P', func(rest, value []byte) {
		if pk, u := Partition(rest[min(2, len(rest)):]), readUsage(value); u.bytes != k.used[pk] {
			k.report("partition %s has %d bytes of documents, its record says %d", pk, k.used[pk], u.bytes)
		}
	})
}

// scanKeys calls visit for all keys of a kind, without their common prefix.
func (k *accountChecker) scanKeys(kind byte, visit func(rest, value []byte)) (n int) {
	prefix := containerPrefix(kind, k.c.number)
	k.r.Scan(prefix, endOfPrefix(prefix), func(key, value []byte) bool {
		n++
		visit(key[len(prefix):], value)
		return true
	})
	return n
}

func (k *accountChecker) checkDocument(rest, value []byte) {
	if len(rest) < 2+8 || int(binary.BigEndian.Uint16(rest)) != len(rest)-10 {
		k.report("a document has an invalid key: %x", rest)
		return
	}
	pk, seq := Partition(rest[2:len(rest)-8]), decodeNumber(rest[len(rest)-8:])
	s := readStored(documentKey(k.c.number, pk, seq), value)
	k.census.Documents++
	k.census.Bytes += int64(s.size)
	k.used[pk] += int64(s.size)
	if s.size > maxInlineSize {
		k.large++
	}
	doc, err := s.readJSON(k.r, k.c)
	if err != nil {
		k.report("%v", err)
		return
	}
	id := documentID(doc)
	if entry := k.r.Get(idKey(k.c.number, pk, id)); decodeNumber(entry) != seq {
		k.report("partition %s, document %q: the id index has no entry for it", pk, id)
	}
	if entry := k.r.Get(changeKey(k.c.number, s.version)); !bytes.Equal(entry, append(appendNumber(seq), pk...)) {
		k.report("partition %s, document %q: it is not in the change feed", pk, id)
	}
	for _, key := range k.c.uniqueEntries(pk, doc) {
		if decodeNumber(k.r.Get(key)) != seq {
			k.report("partition %s, document %q: its unique key has no entry", pk, id)
		}
	}
}

func (k *accountChecker) checkIDEntry(rest, value []byte) {
	n := 0
	if len(rest) >= 2 {
		n = int(binary.BigEndian.Uint16(rest))
	}
	if n == 0 || len(rest) < 2+n || k.r.Get(documentKey(k.c.number, Partition(rest[2:2+n]), decodeNumber(value))) == nil {
		k.report("an entry of the id index refers to no document: %q", rest)
	}
}

func (k *accountChecker) checkChangeEntry(rest, value []byte) {
	if len(value) < 8 {
		k.report("an entry of the change feed is invalid: %x", rest)
		return
	}
	s := readStored(nil, k.r.Get(documentKey(k.c.number, Partition(value[8:]), decodeNumber(value[:8]))))
	if s.version != decodeNumber(rest) {
		k.report("partition %s: an entry of the change feed refers to no document", value[8:])
	}
}

func (k *accountChecker) checkUniqueEntry(rest, value []byte) {
	n := 0
	if len(rest) >= 2 {
		n = int(binary.BigEndian.Uint16(rest))
	}
	if n == 0 || len(rest) < 2+n || k.r.Get(documentKey(k.c.number, Partition(rest[2:2+n]), decodeNumber(value))) == nil {
		k.report("the entry of a unique key refers to no document: %x", rest)
	}
}
