package api

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/api/internal/eventjson"
)

// checkOrigins refuses the whole request if the sender has no right to announce the origin of an
// event. The error lists all these events.
func checkOrigins(ctx context.Context, sent *eventjson.Events) error {
	p := principalOf(ctx)
	if p == nil {
		return nil // without tokens, senders are trusted
	}
	var faults []bodyFault
	total := 0
	for i := range sent.Events {
		if p.MayAnnounce(sent.Events[i].Origin) {
			continue
		}
		if total++; len(faults) < maxFaults {
			faults = append(faults, faultOf(sent.Fault(i, "origin", "the token lacks the role domain:"+sent.Events[i].Origin.String())))
		}
	}
	if total == 0 {
		return nil
	}
	return &problemError{
		problem: missingRight, faults: faults,
		detail: fmt.Sprintf("Nothing was stored: %d of the events are of origins that the token may not announce; errors names them, up to 100.", total),
	}
}
