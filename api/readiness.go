package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A NotReadyError contains the failed checks of a node, if Options.Ready reports any. Its text is
// public, because /readyz needs no token.
type NotReadyError struct {
	Checks []FailedCheck // at least one check
}

// A FailedCheck is a failed check of a node, with the reason and the remedy.
type FailedCheck struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Remedy string `json:"remedy"`
}

// String returns the failed check as one sentence.
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

// checkReadiness returns the problem that /readyz reports, or nil. It does not call the store:
// Options.Ready returns results that a background task has cached.
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
