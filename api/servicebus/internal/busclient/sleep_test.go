package busclient_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api/servicebus/internal/busclient"
)

func TestSleep_ReturnsAfterTheDurationOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.True(t, busclient.Sleep(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, busclient.Sleep(ctx, time.Minute))
		require.Equal(t, time.Minute+time.Second, time.Since(began))
		require.False(t, busclient.Sleep(ctx, 0), "it has ended before")
	})
}
