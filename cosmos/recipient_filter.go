package cosmos

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/domain"
)

// Each cabinet is a partition, so a node that does not know a recipient with many cabinets would need a
// request for each cabinet. The filter of the recipient avoids most of these requests. It is one document
// with the fingerprints of the events in the drawers that are being filled. If the document is too small
// for all these drawers, it contains the smaller drawers only.
//
// For each drawer, the filter has a count, and the fingerprint of every event in the slots below the count.
// The events in later slots are read from pages, or from the tail in the head. The count includes only
// slots that are in pages according to the writer's head. A reader whose head includes fewer slots in pages
// does not use the filter for that drawer. So the filter is right with any head: the covered slots are full
// and never change, and later slots are always read.
//
// The filter is in the partition of the head and is written after the head. So a failover that loses this
// head also loses the filter.

// A recipientFilterDoc is the document that stores the filter of a recipient.
type recipientFilterDoc struct {
	ID           string `json:"id"`
	PartitionKey string `json:"partitionKey"` // partition key of the head of the recipient
	Fingerprints packed `json:"fingerprints"` // see encodeDrawers
	client.Document
}

const recipientFilterID = blockFilterPrefix + "cabinets"

// A filteredDrawer contains the fingerprints of one drawer in the filter of a recipient.
type filteredDrawer struct {
	drawer string
	count  int // number of slots, beginning with the first, that the filter covers
	keys   []fingerprintKey
}

// Sizes in bytes in the filter of a recipient: for each drawer, and for each fingerprint.
const (
	filteredDrawerBytes = 20
	fingerprintBytes    = (fingerprintBits + 7) / 8
)

// sizeOfDrawer returns an upper bound for the bytes of a drawer with n fingerprints in the filter.
func sizeOfDrawer(n int) int { return filteredDrawerBytes + fingerprintBytes*n }

// sizeOf returns an upper bound for the total bytes of drawers in the filter.
func sizeOf(drawers []filteredDrawer) int {
	size := 0
	for i := range drawers {
		size += sizeOfDrawer(len(drawers[i].keys))
	}
	return size
}

// A storedRecipientFilter caches the etag and the content of the stored filter of a recipient, so that a
// process can replace the filter without reading it.
type storedRecipientFilter struct {
	mu       sync.Mutex
	etag     azcore.ETag // empty if no stored filter is known
	counts   map[string]int
	document client.Document
}

// size returns an estimate of the memory of s in bytes.
func (s *storedRecipientFilter) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return 80 * len(s.counts)
}

// setStored caches a filter that was read or written.
func (s *storedRecipientFilter) setStored(etag azcore.ETag, drawers []filteredDrawer, document client.Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.etag, s.counts, s.document = etag, make(map[string]int, len(drawers)), document
	for i := range drawers {
		s.counts[drawers[i].drawer] = drawers[i].count
	}
}

// readFilter reads the filter of a recipient and caches it. If the filter is missing or damaged, the
// result is empty.
func (s *storedRecipientFilter) readFilter(ctx context.Context, c *call, recipient domain.ActorID) ([]filteredDrawer, error) {
	drawers, etag, document, err := c.readRecipientFilter(ctx, recipient)
	if err != nil && !errors.Is(err, errFingerprints) {
		return nil, err
	}
	s.setStored(etag, drawers, document)
	return drawers, nil
}

// readRecipientFilter reads the filter of a recipient. The result is empty if no filter is stored. It
// returns errFingerprints if the filter is damaged.
func (c *call) readRecipientFilter(ctx context.Context, recipient domain.ActorID) ([]filteredDrawer, azcore.ETag, client.Document, error) {
	var doc recipientFilterDoc
	etag, err := c.Read(ctx, c.r.db.catalog, headKey(recipient), recipientFilterID, &doc)
	switch {
	case client.IsNotFound(err):
		return nil, "", client.Document{}, nil
	case domain.KindOf(err) == domain.Damaged:
		return nil, etag, client.Document{}, errFingerprints
	case err != nil:
		return nil, "", client.Document{}, err
	}
	drawers, err := decodeDrawers(doc.Fingerprints)
	return drawers, etag, doc.Document, err
}

// writeFilter stores the filter of a recipient unless another node has replaced the stored filter. In
// that case it reads and caches the stored filter, and the next Save decides whether to replace it.
func (s *storedRecipientFilter) writeFilter(ctx context.Context, c *call, recipient domain.ActorID, drawers []filteredDrawer) error {
	s.mu.Lock()
	before := s.etag
	doc := &recipientFilterDoc{ID: recipientFilterID, PartitionKey: headKey(recipient), Fingerprints: encodeDrawers(drawers), Document: s.document}
	s.mu.Unlock()
	// If the node crashes before this write, the stored filter covers fewer slots. A node that uses the
	// filter reads the pages after these slots.
	etag, err := c.Put(ctx, c.r.db.catalog, doc.PartitionKey, recipientFilterID, before, doc)
	switch {
	case client.IsRefused(err), client.IsNotFound(err):
		_, err = s.readFilter(ctx, c, recipient)
	case err == nil:
		s.setStored(etag, drawers, doc.Document)
	}
	return err
}

// drawersVersion is the first byte of encoded drawers. The number of drawers follows as a uvarint. Each
// drawer has 16 bytes for its id, two uvarints for its count and the number of its fingerprints, and 6
// bytes for each fingerprint. The last 4 bytes are the CRC-32C of all preceding bytes.
const drawersVersion = 1

func encodeDrawers(drawers []filteredDrawer) []byte {
	data := []byte{drawersVersion}
	data = binary.AppendUvarint(data, uint64(len(drawers)))
	for i := range drawers {
		d := &drawers[i]
		id, _ := idNumber(d.drawer)
		data = append(data, id[:]...)
		data = binary.AppendUvarint(data, uint64(d.count)) //nolint:gosec // not negative
		data = binary.AppendUvarint(data, uint64(len(d.keys)))
		for _, key := range d.keys {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(key))
			data = append(data, b[:fingerprintBytes]...)
		}
	}
	return binary.LittleEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
}

func decodeDrawers(data []byte) ([]filteredDrawer, error) {
	end := len(data) - 4
	if end < 1 || data[0] != drawersVersion || crc32.Checksum(data[:end], castagnoli) != binary.LittleEndian.Uint32(data[end:]) {
		return nil, errFingerprints
	}
	d := decoder{b: data[1:end]}
	n := d.readUvarint()
	if n > uint64(len(d.b)/18) {
		return nil, errFingerprints
	}
	drawers := make([]filteredDrawer, n)
	for i := range drawers {
		var id [16]byte
		d.readInto(id[:])
		count, keys := d.readUvarint(), d.readUvarint()
		if d.failed || count > maxSlots || keys > uint64(len(d.b)/fingerprintBytes) {
			return nil, errFingerprints
		}
		drawers[i] = filteredDrawer{drawer: idText(id), count: int(count), keys: make([]fingerprintKey, keys)}
		for j := range drawers[i].keys {
			var b [8]byte
			d.readInto(b[:fingerprintBytes])
			drawers[i].keys[j] = fingerprintKey(binary.LittleEndian.Uint64(b[:]))
		}
	}
	if d.failed || len(d.b) > 0 {
		return nil, errFingerprints
	}
	return drawers, nil
}
