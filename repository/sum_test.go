package repository_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository"
)

func TestSumOf_IsCRC32C(t *testing.T) {
	require.Equal(t, uint32(0xe3069283), repository.SumOf([]byte("123456789")))
	require.Equal(t, uint32(0xe3069283), repository.UpdateSum(repository.SumOf([]byte("1234")), []byte("56789")))
}
