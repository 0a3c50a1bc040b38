package ledger

import "github.com/messagehub/messagehub/repository"

// ErrNoStore reports a bucket whose store is not configured.
var ErrNoStore = repository.ErrNoStore

// A JobRunsError reports that a bucket has a running job of a kind that runs only once at a
// time.
type JobRunsError = repository.JobRunsError
