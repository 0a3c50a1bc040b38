package find

import (
	"fmt"
	"strings"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// spanDetails returns the details that identify a span. It returns nil for a zero span.
func spanDetails(c domain.TraceContext) []Detail {
	if c.IsZero() {
		return nil
	}
	return []Detail{{"trace", c.TraceID.String()}, {"span", c.SpanID.String()}}
}

// saveResult returns the Result for the events saved in one span.
func saveResult(s *repository.FoundSave) Result {
	ids := make([]string, len(s.IDs), len(s.IDs)+1)
	for i, id := range s.IDs {
		ids[i] = id.String()
	}
	if more := s.Count - len(s.IDs); more > 0 {
		ids = append(ids, fmt.Sprintf("and %d more", more))
	}
	return Result{
		Kind: Save, State: StateAccepted, Actor: s.Cabinet.Recipient,
		Title: fmt.Sprintf("Save of %s from %s", countOf(s.Count, "event"), s.Cabinet.Origin),
		Steps: []Step{{
			What: StepAccepted, At: s.Saved,
			Text: fmt.Sprintf("The hub accepted %s from domain %s for actor %s.", countOf(s.Count, "event"), s.Cabinet.Origin, s.Cabinet.Recipient),
			Details: append([]Detail{
				{"numbers", fmt.Sprintf("%d to %d", s.First, s.Last)},
				{"cabinet", cabinetText(s.Cabinet)},
				{"group", s.Group.String()},
				{"events", strings.Join(ids, ", ")},
			}, spanDetails(s.Span)...),
		}},
		Notes: []string{"Search for the id of an event to see its state."},
	}
}
