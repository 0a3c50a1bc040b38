package level

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestReadStatus_ShowsTheNodesAndWritesNothing(t *testing.T) {
	r := newRig(t)
	_, isThere, err := ReadStatus(t.Context(), r.account.Connect(), optionsUpTo(1))
	require.NoError(t, err)
	require.False(t, isThere)
	_, isThere, err = ReadStatus(t.Context(), r.account.Connect(), optionsUpTo(1))
	require.NoError(t, err)
	require.False(t, isThere, "the look before has created nothing")

	_, err = r.open(optionsUpTo(2)).Join(t.Context(), "host")
	require.NoError(t, err)
	status, isThere, err := ReadStatus(t.Context(), r.account.Connect(), optionsUpTo(2))
	require.NoError(t, err)
	require.True(t, isThere)
	require.Equal(t, 2, status.Level)
	require.Len(t, status.Nodes, 1)
	require.Equal(t, "v2", status.Nodes[0].Version)

	status, isThere, err = ReadStatus(t.Context(), r.account.Connect(), optionsUpTo(1))
	require.Equal(t, domain.NewerFormat, domain.KindOf(err), err)
	require.True(t, isThere)
	require.Len(t, status.Nodes, 1)
}
