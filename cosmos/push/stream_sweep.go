package push

import (
	"context"
	"fmt"
	"time"
)

// The days whose payloads a sweep removes: those that ended before the retention, less a margin for
// clocks and for entries that are being read. Sweeps that are missed for less than sweptDays are made
// up for by the next one.
const (
	sweepMargin = 2 * 24 * time.Hour
	sweptDays   = 30
)

// Sweep removes large payloads whose retention has passed. Their entries are no longer read, even if
// their documents still exist. A crash leaves objects for the next sweep.
func (s *Store) Sweep(ctx context.Context) error {
	last := s.opts.Clock().Add(-s.opts.Retention - sweepMargin)
	for i := range sweptDays {
		folder := objectFolder(last.AddDate(0, 0, -i))
		if err := s.content.DeleteFolder(ctx, folder); err != nil {
			return fmt.Errorf("sweep %s: %w", folder, err)
		}
	}
	return nil
}
