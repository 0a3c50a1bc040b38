package busclient

import (
	"context"
	"time"
)

// Sleep returns after d, or when ctx ends. It reports whether ctx is still valid then.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
