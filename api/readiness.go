package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A NotReadyError is what Options.Ready returns if checks of the node have failed.
// Clients without a token can read its text.
type NotReadyError struct {
	Checks []FailedCheck // one or more
}

// A FailedCheck is a check of the node that has failed, with its reason and what to
// do about it.
type FailedCheck struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// String returns the check as one sentence.
func (c FailedCheck) String() string {
	return fmt.Sprintf("%s: %s; %s", c.Name, c.Reason, c.Remedy)
}

// Error returns one sentence for each failed check.
func (e *NotReadyError) Error() string {
	sentences := make([]string, len(e.Checks))
	for i, c := range e.Checks {
		sentences[i] = c.String() + "."
	}
	return strings.Join(sentences, " ")
}

// checkReadiness returns the problem that /readyz reports, or nil. It makes no call to
// the store: Options.Ready returns results that a background task has cached.
func (s *Server) checkReadiness(ctx context.Context) error {
	if s.draining.Err() != nil {
		return refuse(notReady, "The hub is about to stop; send requests to another node.")
	}
	err := s.opts.Ready(ctx)
	if err == nil {
		return nil
	}
	problem := &problemError{problem: notReady, cause: err}
	if failed, ok := errors.AsType[*NotReadyError](err); ok {
		problem.detail, problem.checks = failed.Error(), failed.Checks
	}
	return problem
}
