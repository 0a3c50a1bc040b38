package identity

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokenCache_ReplacesTheOldestToken(t *testing.T) {
	m := newTokenCache(3)
	key := func(n int) (k hash) { binary.BigEndian.PutUint64(k[:], uint64(n)); return k }
	for n := range 10 {
		m.addToken(key(n), &verifiedToken{})
		m.addToken(key(n), &verifiedToken{})
	}
	require.Equal(t, 3, m.size())
	require.Nil(t, m.findToken(key(6)))
	for n := 7; n < 10; n++ {
		require.NotNil(t, m.findToken(key(n)))
	}
}
