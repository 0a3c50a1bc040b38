package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain"
)

// jobPollInterval is the interval at which a command requests the state of a
// job.
const jobPollInterval = 500 * time.Millisecond

// awaitJob waits until a job has ended, and returns its last state. path is the
// URL path of jobs of this kind.
func (o *objectsCommand) awaitJob(ctx context.Context, kind, path string, job *hubclient.ObjectJob) (*hubclient.ObjectJob, error) {
	look := time.NewTicker(jobPollInterval)
	defer look.Stop()
	id := job.ID
	for job.State == string(domain.JobRunning) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s %s has not ended within %s; it continues in the hub, GET %s/%s shows it", kind, id, o.timeout, path, id)
		}
		found, err := o.hub.ObjectJob(ctx, path, id)
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%s %s has begun, and cannot be read: %w", kind, id, err)
		}
		if err == nil {
			job = found
		}
	}
	return job, nil
}

// showJob prints the result of a job, either as JSON or by calling text. It
// fails if the job was not completed.
func (o *objectsCommand) showJob(kind string, job *hubclient.ObjectJob, text func()) error {
	if o.json {
		if err := json.NewEncoder(o.p.out).Encode(job); err != nil {
			return err
		}
	} else {
		text()
	}
	if job.State != string(domain.JobCompleted) {
		return fmt.Errorf("%s %s has %s: %s", kind, job.ID, job.State, job.Report)
	}
	return nil
}
