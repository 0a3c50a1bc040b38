// Package checksum computes CRC-32C, the checksum of iSCSI, for which processors have an
// instruction. The embedded engines store this checksum beside their data.
package checksum

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Compute returns the checksum of p.
func Compute(p []byte) uint32 { return Update(0, p) }

// Update continues a checksum: it returns the checksum of the bytes that sum covers followed by p.
func Update(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }
