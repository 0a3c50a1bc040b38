package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/api/internal/pathparam"
	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/ledger"
)

const (
	crawlsPath      = "/v1/objects/crawls"
	inventoriesPath = "/v1/objects/inventories"
	patchesPath     = "/v1/objects/patches"

	crawlBytes     = 16 * kilobyte // maximum bytes of a request
	inventoryBytes = 768 * kilobyte
)

// Default and maximum number of jobs in a list.
const (
	defaultJobs = 25
	maxJobs     = 100
)

// A jobDocument is the JSON of a job on objects.
type jobDocument struct {
	ID       string            `json:"id"`
	Bucket   string            `json:"bucket,omitempty"`
	Request  json.RawMessage   `json:"request,omitempty"`
	State    domain.JobState   `json:"state"`
	Started  time.Time         `json:"started"`
	Ended    *time.Time        `json:"ended,omitempty"`
	Counts   jobCounts         `json:"counts"`
	Attempts int               `json:"attempts,omitempty"`
	Report   string            `json:"report,omitempty"`
	Failures []failureDocument `json:"failures,omitempty"`
}

// jobCounts is the JSON form of domain.JobCounts.
type jobCounts struct {
	Seen      int64 `json:"seen"`
	Created   int64 `json:"created"`
	Deleted   int64 `json:"deleted"`
	Changed   int64 `json:"changed"`
	Unchanged int64 `json:"unchanged"`
	Refused   int64 `json:"refused"`
}

// A failureDocument is the reason why a job could not change an object, as JSON.
type failureDocument struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

func documentOfJob(job *domain.Job) jobDocument {
	d := jobDocument{
		ID: job.ID.UUID(), Bucket: job.Bucket, Request: json.RawMessage(job.Request), State: job.State, Started: job.Started.UTC(),
		Counts: jobCounts(job.Counts), Attempts: job.Attempts, Report: job.Report,
	}
	if !job.Ended.IsZero() {
		ended := job.Ended.UTC()
		d.Ended = &ended
	}
	for _, f := range job.Failures {
		d.Failures = append(d.Failures, failureDocument(f))
	}
	return d
}

// startCrawl starts a crawl. If the client prefers, it waits until the crawl has ended.
func (s *Server) startCrawl(w http.ResponseWriter, r *http.Request) error {
	var bucket, prefix string
	if err := (jsonFields{"bucket": &bucket, "prefix": &prefix}).readFields(w, r, crawlBytes, "bucket"); err != nil {
		return err
	}
	job, err := s.opts.Objects.StartCrawl(r.Context(), bucket, prefix)
	if err != nil {
		return asJobProblem(r.Context(), err)
	}
	return s.answerStarted(w, r, crawlsPath, &job)
}

// startInventory starts a job that adds the objects of an inventory.
func (s *Server) startInventory(w http.ResponseWriter, r *http.Request) error {
	var wanted ledger.InventoryRequest
	var manifest json.RawMessage
	if err := (jsonFields{"manifest": &manifest, "bucket": &wanted.Bucket, "key": &wanted.Key}).readFields(w, r, inventoryBytes); err != nil {
		return err
	}
	wanted.Manifest = manifest
	if hasPlace := wanted.Bucket != "" && wanted.Key != ""; hasPlace == (manifest != nil) {
		return refuse(invalid, "Nothing was done: want either the member manifest, or the members bucket and key, which say where it is.")
	}
	job, err := s.opts.Objects.StartInventory(r.Context(), wanted)
	if err != nil {
		return asJobProblem(r.Context(), err)
	}
	return s.answerStarted(w, r, inventoriesPath, &job)
}

// answerStarted responds with 202 and the job, which has started. If the client prefers to wait,
// and the job ends within that time, it responds with 200.
func (s *Server) answerStarted(w http.ResponseWriter, r *http.Request, path string, job *domain.Job) error {
	recordOf(r.Context()).note(slog.String("job", job.ID.UUID()))
	w.Header().Set("Location", path+"/"+job.ID.UUID())
	if wait := min(preferredWait(r.Header), s.opts.Deadline-s.opts.Deadline/10); wait > 0 {
		w.Header().Set("Preference-Applied", fmt.Sprintf("wait=%d", int(wait.Seconds())))
		paceOf(r.Context()).extendDeadline(wait)
		waiting, cancel := context.WithTimeout(r.Context(), wait)
		defer cancel()
		defer context.AfterFunc(s.draining, cancel)() //nolint:contextcheck // it is the server's
		// If the job cannot be read now, the response contains the job as it was at the start.
		if found, err := s.opts.Objects.WaitForJob(waiting, *job); err == nil {
			job = &found
		}
	}
	status := http.StatusAccepted
	if job.State != domain.JobRunning {
		status = http.StatusOK
	}
	writeJSON(w, status, documentOfJob(job))
	return nil
}

// preferredWait returns the preference wait of RFC 7240 in whole seconds, or 0 if the request
// contains none.
func preferredWait(h http.Header) time.Duration {
	for _, line := range h.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 16)
			if err == nil {
				return time.Duration(seconds) * time.Second
			}
		}
	}
	return 0
}

// listJobs returns a handler that lists the jobs of one kind, the newest first.
func (s *Server) listJobs(kind domain.JobKind) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		values, err := query.Parse(r, "before", "limit")
		if err != nil {
			return err
		}
		before := domain.JobID{Kind: kind}
		if text := values.Get("before"); text != "" {
			if before, err = domain.ParseJobID(kind, text); err != nil {
				return err
			}
		}
		limit, err := numberOf(values.Get("limit"), "limit", defaultJobs, 1, maxJobs)
		if err != nil {
			return err
		}
		found, err := s.opts.Objects.ListJobs(r.Context(), before, limit)
		if err != nil {
			return err
		}
		results := make([]jobDocument, len(found))
		for i := range found {
			results[i] = documentOfJob(&found[i])
		}
		links := make(map[string]string)
		if len(found) == limit {
			links["next"] = fmt.Sprintf("%s?before=%s&limit=%d", r.URL.Path, found[limit-1].ID.UUID(), limit)
		}
		writeJSON(w, http.StatusOK, struct {
			Results []jobDocument     `json:"results"`
			Links   map[string]string `json:"links"`
		}{results, links})
		return nil
	}
}

// getJob returns a handler that responds with a job of the given kind, whose id is in the path.
func (s *Server) getJob(kind domain.JobKind) func(http.ResponseWriter, *http.Request) error {
	return s.aboutJob(kind, func(ctx context.Context, id domain.JobID) (domain.Job, error) { return s.opts.Objects.Job(ctx, id) })
}

// stopJob returns a handler that stops a job of the given kind, whose id is in the path.
func (s *Server) stopJob(kind domain.JobKind) func(http.ResponseWriter, *http.Request) error {
	return s.aboutJob(kind, func(ctx context.Context, id domain.JobID) (domain.Job, error) { return s.opts.Objects.StopJob(ctx, id) })
}

// aboutJob returns a handler that calls do with the job id in the path, and responds with the job.
func (s *Server) aboutJob(kind domain.JobKind, do func(context.Context, domain.JobID) (domain.Job, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if _, err := query.Parse(r); err != nil {
			return err
		}
		id, err := domain.ParseJobID(kind, pathparam.Value(r, "jobId"))
		if err != nil {
			return &problemError{problem: notFound, cause: err, detail: "There is no such job."}
		}
		recordOf(r.Context()).note(slog.String("job", id.UUID()))
		job, err := do(r.Context(), id)
		if err != nil {
			return err
		}
		writeJSON(w, http.StatusOK, documentOfJob(&job))
		return nil
	}
}

// asJobProblem returns the problem for a job that could not be started.
func asJobProblem(ctx context.Context, err error) error {
	if runs, ok := errors.AsType[*ledger.JobRunsError](err); ok {
		return &problemError{problem: crawlUnderWay, cause: err, detail: fmt.Sprintf(
			"Crawl %s of this bucket is under way. Wait for its end, or stop it: DELETE %s/%s.", runs.ID.UUID(), crawlsPath, runs.ID.UUID())}
	}
	if errors.Is(err, ledger.ErrUnsupportedFormat) {
		return &problemError{problem: unsupportedFormat, cause: err, detail: "The hub reads inventories in CSV, which may be compressed by gzip, and in Parquet."}
	}
	if errors.Is(err, ledger.ErrNoStore) {
		return &problemError{problem: notFound, cause: err, detail: "The store of this bucket is not configured in the hub."}
	}
	return asProblem(ctx, err)
}
