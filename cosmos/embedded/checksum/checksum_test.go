package checksum_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/checksum"
)

// The expected values are from RFC 3720, section B.4, and the published check value of CRC-32C.
func TestCompute_IsCRC32C(t *testing.T) {
	require.Equal(t, uint32(0xe3069283), checksum.Compute([]byte("123456789")))
	require.Equal(t, uint32(0x8a9136aa), checksum.Compute(make([]byte, 32)))
	require.Zero(t, checksum.Compute(nil))
}

func TestUpdate_ContinuesAChecksum(t *testing.T) {
	require.Equal(t, checksum.Compute([]byte("123456789")), checksum.Update(checksum.Compute([]byte("1234")), []byte("56789")))
}
