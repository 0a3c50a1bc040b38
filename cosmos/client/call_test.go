package client

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestRetry_EndsWithItsBudget(t *testing.T) {
	for _, tc := range []struct {
		name    string
		retries int
		err     error
		kind    domain.Kind
		tries   int
	}{
		{"others are faster", 3, ErrStale, domain.Busy, 4},
		{"no retries", -1, ErrStale, domain.Busy, 1},
		{"missing for a while", MaxMissing - 2, ErrNotYetVisible, domain.Busy, MaxMissing - 1},
		{"missing for good", MaxMissing - 1, ErrNotYetVisible, domain.Damaged, MaxMissing},
		{"another error", 3, domain.Errorf(domain.Invalid, "no"), domain.Invalid, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := New(&Database{}, Options{Retries: tc.retries}).Begin("test")
				tries := 0
				err := c.Retry(context.Background(), func() error { tries++; return tc.err })
				require.Equal(t, tc.kind, domain.KindOf(err), "%v", err)
				require.Equal(t, tc.tries, tries)
			})
		})
	}
}

func TestAddRetries_AddsNothingToACallWithoutRetries(t *testing.T) {
	c := New(&Database{}, Options{Retries: -1}).Begin("test")
	c.AddRetries(5)
	require.False(t, c.Pause(t.Context(), 0))
}
