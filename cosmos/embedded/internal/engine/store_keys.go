package engine

import (
	"encoding/binary"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

var (
	counterKey  = []byte("mcounter")
	identityKey = []byte("midentity")
	resourceKey = []byte("mresource")
	formatKey   = []byte("mformat")
)

// Format is the version of the keys and values in this file. It must increase when this version cannot read existing
// stores; steps then convert them. Formats 1 and 2 were never released, so there are no steps for them.
const Format = 3

// storeFormat returns the current format of the engine's stores.
func storeFormat(version string) *disk.Format {
	return &disk.Format{
		Number: Format, Version: version, Key: formatKey,
		IsNew: func(s disk.State) bool { return s.Get(identityKey) == nil },
	}
}

func databaseKey(id string) []byte { return append([]byte{'d'}, id...) }

func containerKey(database, id string) []byte {
	k := append([]byte{'c'}, database...)
	k = append(k, 0)
	return append(k, id...)
}

// partitionPrefix is the common prefix of all keys of one kind in a logical partition. It contains the length of the
// partition, so no prefix is a prefix of a different one.
func partitionPrefix(kind byte, container uint32, pk Partition) []byte {
	k := make([]byte, 0, 1+4+2+len(pk)+24)
	k = append(k, kind)
	k = binary.BigEndian.AppendUint32(k, container)
	k = binary.BigEndian.AppendUint16(k, uint16(len(pk))) //nolint:gosec // at most 2 KB, encoded
	return append(k, pk...)
}

func idKey(container uint32, pk Partition, id string) []byte {
	return append(partitionPrefix('I', container, pk), id...)
}

func documentKey(container uint32, pk Partition, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(partitionPrefix('D', container, pk), seq)
}

func blobKey(container uint32, version uint64) []byte {
	return binary.BigEndian.AppendUint64(containerPrefix('B', container), version)
}

func partitionKey(container uint32, pk Partition) []byte {
	return partitionPrefix('P', container, pk)
}

// changeKey is the change feed key of a document.
func changeKey(container uint32, version uint64) []byte {
	return binary.BigEndian.AppendUint64(containerPrefix('L', container), version)
}

// maxPartitionBytes is the maximum number of bytes in one logical partition.
const maxPartitionBytes = 20 << 30

// A usage is the stored record of a logical partition.
type usage struct {
	version uint64 // number of the last write in the partition
	bytes   int64  // total bytes of the documents in the partition
}

func readUsage(b []byte) usage {
	if len(b) != 16 {
		return usage{}
	}
	return usage{binary.BigEndian.Uint64(b), int64(binary.BigEndian.Uint64(b[8:]))} //nolint:gosec // as encodeUsage wrote it
}

func (u usage) encodeUsage() []byte {
	return binary.BigEndian.AppendUint64(appendNumber(u.version), uint64(u.bytes)) //nolint:gosec // readUsage converts it back
}

func containerPrefix(kind byte, container uint32) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, 16), kind), container)
}

// endOfPrefix returns the first key that does not start with prefix.
func endOfPrefix(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return []byte{0xff, 0xff, 0xff, 0xff, 0xff}
}

func decodeNumber(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func appendNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
