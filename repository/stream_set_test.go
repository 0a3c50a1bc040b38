package repository_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func TestStreamSet_HasAllMembersAndFewOthers(t *testing.T) {
	stream := func(i int) domain.StreamName {
		actor, err := domain.ParseActorID(fmt.Sprint("actor-", i))
		require.NoError(t, err)
		return domain.DataStream(actor)
	}
	var one, all repository.StreamSet
	require.False(t, one.Has(stream(0)))
	for i := range 100 {
		one = nil
		one.Add(stream(i))
		require.True(t, one.Has(stream(i)))
		all.AddAll(one)
	}
	others := 0
	for i := range 10_000 {
		require.True(t, i >= 100 || all.Has(stream(i)))
		if i >= 100 && all.Has(stream(i)) {
			others++
		}
	}
	require.Less(t, others, 500)
	require.LessOrEqual(t, len(all), 512)
}
