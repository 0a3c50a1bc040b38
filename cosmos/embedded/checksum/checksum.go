// Package checksum computes CRC-32C, the checksum of iSCSI, which processors compute with one
// instruction. The embedded engines store it beside their data.
package checksum

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Compute returns the checksum of p.
func Compute(p []byte) uint32 { return Update(0, p) }

// Update returns the checksum of the bytes that sum covers, followed by p.
func Update(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }
