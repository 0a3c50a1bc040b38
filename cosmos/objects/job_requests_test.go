package objects

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/accounttest"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

func newInventory(n byte, request string) *domain.Job {
	return &domain.Job{ID: domain.NewJobID(domain.InventoryJob, jobTime, [10]byte{n}), Request: request, State: domain.JobRunning, Started: jobTime}
}

// runInventory runs an inventory. A second run with the same n continues or repeats the job.
func runInventory(ctx context.Context, s *Store, n byte, request string) error {
	inventory := newInventory(n, request)
	if err := s.CreateJob(ctx, inventory); err != nil {
		return err
	}
	job, err := s.ClaimJob(ctx, inventory.ID, "node", jobTime, jobTime.Add(time.Hour))
	if domain.KindOf(err) == domain.Conflict { // an earlier run has ended the job
		return nil
	}
	if err != nil {
		return err
	}
	if job.Request != request {
		return domain.Errorf(domain.Damaged, "the request is %q", domain.Shorten(job.Request))
	}
	job.Cursor, job.Request = "row 1", "what a save has is not stored"
	if err := s.SaveJob(ctx, &job); err != nil {
		return err
	}
	job.End(domain.JobCompleted, jobTime)
	return s.SaveJob(ctx, &job)
}

// requireInventory requires the documents that a complete runInventory stores.
func requireInventory(t *testing.T, s *Store, n byte, request string) {
	t.Helper()
	job, err := s.Job(t.Context(), newInventory(n, "").ID)
	require.NoError(t, err)
	require.Equal(t, request, job.Request)
	require.Equal(t, "row 1", job.Cursor)
	require.Equal(t, domain.JobCompleted, job.State)
	stopped, err := s.StopJob(t.Context(), job.ID, jobTime)
	require.NoError(t, err)
	require.Equal(t, job, stopped)
}

// SaveJob does not write the manifest of an inventory again, so its cost does not depend on the size of
// the manifest.
func TestSaveJob_CostDoesNotDependOnTheManifest(t *testing.T) {
	price := func(size int) (claim, save float64) {
		a := accounttest.New(t, embedded.Options{}, Containers())
		s := New(a.Connect(), Options{})
		inventory := newInventory(1, strings.Repeat("m", size))
		require.NoError(t, s.CreateJob(t.Context(), inventory))
		measure := func(f func()) float64 {
			before := a.Engine.RequestUnits()
			f()
			return a.Engine.RequestUnits() - before
		}
		var job domain.Job
		claim = measure(func() {
			var err error
			job, err = s.ClaimJob(t.Context(), inventory.ID, "node", jobTime, jobTime.Add(time.Hour))
			require.NoError(t, err)
			require.Len(t, job.Request, size)
		})
		save = measure(func() { require.NoError(t, s.SaveJob(t.Context(), &job)) })
		looks := measure(func() {
			running, err := s.RunningJobs(t.Context())
			require.NoError(t, err)
			require.Len(t, running, 1)
			require.Empty(t, running[0].Request)
		})
		require.LessOrEqual(t, looks, 4.0)
		return claim, save
	}
	_, short := price(100)
	claim, long := price(400 << 10)
	t.Logf("%.1f RU a save with 100 bytes, %.1f with 400 KB, which a claim reads for %.1f", short, long, claim)
	require.InDelta(t, short, long, 0.1)
	require.LessOrEqual(t, long, 16.0)
}

// Each request of an inventory fails once with each fault. The stored documents are the same as without
// faults.
func TestEveryRequestOfAnInventoryBrokenOnce_KeepsItsManifest(t *testing.T) {
	for _, fault := range faulty.CommonFaults() {
		if fault == faulty.Forbidden {
			continue // a call does not retry a request that is refused with 403
		}
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					node := New(a.Connect(), Options{})
					a.Transport.BreakOne(n, fault)
					require.NoError(t, runInventory(t.Context(), node, 1, "manifest"), "request %d", n)
					broken := a.Transport.Calls() >= n
					a.Transport.Break(nil)
					requireInventory(t, node, 1, "manifest")
					if !broken {
						require.Greater(t, n, 7)
						return
					}
				}
			})
		})
	}
}

// A node crashes before or after one of its requests, and another node repeats all calls. The manifest
// is stored.
func TestANodeThatEndsAtAnyRequest_KeepsTheManifest(t *testing.T) {
	for _, fault := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				for n := 1; ; n++ {
					a := accounttest.New(t, embedded.Options{}, Containers())
					a.Transport.CrashAt(n, fault)
					err := runInventory(t.Context(), New(a.Connect(), Options{}), 1, "manifest")
					hasEnded := a.Transport.Fired() > 0
					a.Transport.Break(nil)
					require.Equal(t, hasEnded, err != nil, "request %d: %v", n, err)
					other := New(a.Connect(), Options{})
					require.NoError(t, runInventory(t.Context(), other, 1, "manifest"), "request %d", n)
					requireInventory(t, other, 1, "manifest")
					if !hasEnded {
						return
					}
				}
			})
		})
	}
}

// An older version stored the request of a job in the document of the job. This version can still read
// it.
func TestAnInventoryOfAnOlderVersion_KeepsItsManifest(t *testing.T) {
	a := accounttest.New(t, embedded.Options{}, Containers())
	s := New(a.Connect(), Options{})
	old := newJobDoc(newInventory(1, ""), "write", nil)
	old.StoredFormat, old.Request = 0, "manifest"
	_, err := s.client.Begin("test").Put(t.Context(), s.objects, jobsKey, old.ID, "", old)
	require.NoError(t, err)
	require.NoError(t, runInventory(t.Context(), s, 1, "manifest"))
	requireInventory(t, s, 1, "manifest")
}

// All documents of an inventory expire at the same time, some time after its end.
func TestAManifest_IsKeptAsLongAsItsInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := accounttest.New(t, embedded.Options{}, Containers())
		s := New(a.Connect(), Options{})
		require.NoError(t, s.CreateJob(t.Context(), newInventory(2, "running")))
		<-time.After(2 * repository.JobRetention)
		require.NoError(t, runInventory(t.Context(), s, 1, "manifest"))
		read := func(n byte) error {
			_, err := s.client.Begin("test").Read(t.Context(), s.objects, jobsKey, requestID(newInventory(n, "").ID), &requestDoc{})
			return err
		}
		<-time.After(repository.JobRetention - time.Minute)
		requireInventory(t, s, 1, "manifest")
		require.NoError(t, read(1))
		<-time.After(2 * time.Minute)
		require.Error(t, read(1))
		_, err := s.Job(t.Context(), newInventory(1, "").ID)
		require.Equal(t, domain.NotFound, domain.KindOf(err))
		job, err := s.Job(t.Context(), newInventory(2, "").ID)
		require.NoError(t, err)
		require.Equal(t, "running", job.Request)
	})
}
