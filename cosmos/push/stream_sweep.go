package push

import (
	"context"
	"fmt"
	"time"
)

// A sweep removes the payloads of sweptDays days: the last days that ended more than the retention plus
// sweepMargin ago. The margin allows for clocks that differ and for entries that are being read. If no sweep
// ran for some days, fewer than sweptDays, the next sweep removes the payloads of these days, too.
const (
	sweepMargin = 2 * 24 * time.Hour
	sweptDays   = 30
)

// Sweep removes large payloads whose retention has passed. Their entries are no longer returned, even if
// their documents still exist. A crash leaves objects, which the next sweep removes.
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
