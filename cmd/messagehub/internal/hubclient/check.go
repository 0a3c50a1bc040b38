package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/messagehub/messagehub/domain/hub"
)

// Check asks the hub to check its store, and returns the report. The method is
// a [hub.Checker].
func (c *Client) Check(ctx context.Context, opts hub.CheckOptions) (hub.CheckReport, error) {
	seen := hub.CheckReport{Findings: []hub.Finding{}}
	body, err := json.Marshal(map[string]any{"repair": opts.Repair, "actor": opts.Actor.String(), "resume": opts.Resume})
	if err != nil {
		return seen, err
	}
	resp, err := c.Do(ctx, http.MethodPost, "/v1/admin/check", "", body)
	if err != nil {
		return seen, err
	}
	defer resp.Body.Close()
	for lines := json.NewDecoder(resp.Body); ; {
		var line struct {
			Progress *hub.CheckReport `json:"progress"`
			Finding  *hub.Finding     `json:"finding"`
			Report   *hub.CheckReport `json:"report"`
			Problem  *Problem         `json:"problem"`
		}
		switch err := lines.Decode(&line); {
		case err != nil:
			return seen, c.Unreachable(errors.Join(errors.New("the response is incomplete"), err))
		case line.Finding != nil:
			seen.Findings = append(seen.Findings, *line.Finding)
		case line.Progress != nil:
			line.Progress.Findings = seen.Findings
			seen = *line.Progress
			if opts.Progress != nil {
				opts.Progress(seen)
			}
		case line.Report != nil:
			return *line.Report, nil
		case line.Problem != nil:
			return seen, line.Problem
		}
	}
}
