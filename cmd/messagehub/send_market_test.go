package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/energymarket"
)

func TestSend_AcceptsTheEventsOfTheMarket(t *testing.T) {
	m := energymarket.New(20_000, 0, 1)
	for i := range m.Day {
		require.NoError(t, checkEvent(m.Day[i].AppendJSON(nil)))
	}
}
