package engine

import "encoding/binary"

var (
	counterKey  = []byte("mcounter")
	identityKey = []byte("midentity")
	resourceKey = []byte("mresource")
)

func databaseKey(id string) []byte { return append([]byte{'d'}, id...) }

func containerKey(database, id string) []byte {
	k := append([]byte{'c'}, database...)
	k = append(k, 0)
	return append(k, id...)
}

// partitionPrefix starts all keys of one kind in one logical partition. The
// length in front keeps one partition's keys from being a prefix of another's.
func partitionPrefix(kind byte, container uint32, pk Partition) []byte {
	k := make([]byte, 0, 1+4+2+len(pk)+24)
	k = append(k, kind)
	k = binary.BigEndian.AppendUint32(k, container)
	k = binary.BigEndian.AppendUint16(k, uint16(len(pk))) //nolint:gosec // at most 2 KB and its encoding
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

func containerPrefix(kind byte, container uint32) []byte {
	return binary.BigEndian.AppendUint32(append(make([]byte, 0, 16), kind), container)
}

// after returns the first key that does not start with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return []byte{0xff, 0xff, 0xff, 0xff, 0xff}
}

func number(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func appendNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
