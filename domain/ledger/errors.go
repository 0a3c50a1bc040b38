package ledger

import "github.com/messagehub/messagehub/repository"

// ErrNoStore reports that the store of a bucket is not configured.
var ErrNoStore = repository.ErrNoStore

// A JobRunsError reports that a job of the same kind is already running for a bucket.
type JobRunsError = repository.JobRunsError
