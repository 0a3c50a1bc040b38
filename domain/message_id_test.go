package domain_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestMessageID_IsReadBack(t *testing.T) {
	for _, e := range []domain.EntryID{{}, {Priority: 9, Number: 17}, {Number: math.MaxInt64}} {
		got, ok := domain.ParseMessageID(e.MessageID())
		require.True(t, ok, e.MessageID())
		require.Equal(t, e, got)
	}
}

func TestMessageID_HasOneText(t *testing.T) {
	for _, text := range []string{
		"", "m", "m0", "m0.", "m.1", "0.17", "M0.17", "m00.17", "m0.017", "m0.+17", "m0.-1", "m10.1", "m-1.1", "m0.17 ", "m0.17.0", "m0.9223372036854775808",
	} {
		_, ok := domain.ParseMessageID(text)
		require.False(t, ok, text)
	}
}
