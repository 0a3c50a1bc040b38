package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// failedChecks returns the failed checks that r reports.
func failedChecks(t *testing.T, r *readiness) []api.FailedCheck {
	t.Helper()
	err := r.Ready(t.Context())
	if err == nil {
		return nil
	}
	var notReady *api.NotReadyError
	require.ErrorAs(t, err, &notReady)
	return notReady.Checks
}

func newTestReadiness(checks ...readinessCheck) *readiness {
	return newReadiness(checks, 0, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
}

// runReadiness runs r until stop is called.
func runReadiness(t *testing.T, r *readiness) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func TestReadiness_IsNotReadyBeforeTheFirstRun(t *testing.T) {
	r := newTestReadiness(readinessCheck{"store", func(context.Context) error { return nil }})
	require.Equal(t, []api.FailedCheck{{Name: "store", Reason: "the check has not run yet", Remedy: "repeat the request in a few seconds"}}, failedChecks(t, r))
	r.runChecks(t.Context())
	require.Empty(t, failedChecks(t, r))
}

func TestReadiness_FollowsAFaultWithinOneInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault atomic.Pointer[error] // error that the disk currently returns
		setFault := func(err error) { fault.Store(&err) }
		setFault(nil)
		r := newTestReadiness(
			readinessCheck{"store", func(context.Context) error { return nil }},
			readinessCheck{"disk", func(context.Context) error { return *fault.Load() }},
		)
		r.runChecks(t.Context())
		stop := runReadiness(t, r)
		defer stop()

		setFault(&unreadyError{"no room", "make some", errors.New("a path")})
		<-time.After(readinessInterval + time.Millisecond)
		require.Equal(t, []api.FailedCheck{{Name: "disk", Reason: "no room", Remedy: "make some"}}, failedChecks(t, r))
		require.Zero(t, testutil.ToFloat64(r.passed.WithLabelValues("disk")))

		setFault(errors.New("a secret"))
		<-time.After(readinessInterval)
		require.Equal(t, []api.FailedCheck{{Name: "disk", Reason: "the check failed", Remedy: "see the log of the hub"}}, failedChecks(t, r))

		setFault(nil)
		<-time.After(readinessInterval)
		require.Empty(t, failedChecks(t, r))
	})
}

func TestReadiness_CountsAHangingCheckAsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang, released := false, make(chan struct{})
		r := newTestReadiness(readinessCheck{"disk", func(context.Context) error {
			if hang {
				<-released
			}
			return nil
		}}, readinessCheck{"store", func(context.Context) error { return nil }})
		r.runChecks(t.Context())
		hang = true
		stop := runReadiness(t, r)
		<-time.After(maxMissedRuns*readinessInterval + readinessTimeout + time.Second)
		failed := failedChecks(t, r)
		require.Len(t, failed, 1, "the other check runs on")
		require.Equal(t, "the check has not finished for 36s", failed[0].Reason)
		close(released)
		stop()
	})
}

func TestReadiness_RunsNoCheckWhenItIsRead(t *testing.T) {
	runs := 0
	r := newTestReadiness(readinessCheck{"store", func(context.Context) error { runs++; return nil }})
	r.runChecks(t.Context())
	for range 1000 {
		require.Empty(t, failedChecks(t, r))
	}
	require.Equal(t, 1, runs)
}

func TestReadiness_IsAlwaysReadyWithoutChecks(t *testing.T) {
	r := newReadiness([]readinessCheck{{"store", func(context.Context) error { return errors.New("no") }}}, -1, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	r.runChecks(t.Context())
	require.NoError(t, r.Run(t.Context()))
	require.Empty(t, failedChecks(t, r))
}

func TestDiskCheck_NamesTheFolderOnAFullDisk(t *testing.T) {
	const roomy = 1 << 30
	for _, tc := range []struct {
		name  string
		usage diskUsage
		err   error
		want  string // reason of the failure; "" if the check passes
	}{
		{"room", diskUsage{isKnown: true, free: roomy}, nil, ""},
		{"a system without reports", diskUsage{}, nil, ""},
		{"exactly the floor", diskUsage{isKnown: true, free: 64 << 20}, nil, ""},
		{"less than the floor", diskUsage{isKnown: true, free: 63<<20 + 5}, nil, "the disk of folder content has 63 MB free, less than limits.free-disk = 64MB"},
		{"no inodes", diskUsage{isKnown: true, free: roomy, noMoreFile: true}, nil, "the disk of folder content has no inodes left"},
		{"read-only", diskUsage{isKnown: true, free: roomy, isReadOnly: true}, nil, "the disk of folder content is read-only"},
		{"gone", diskUsage{}, errors.New("stale handle"), "folder content cannot be read: stale handle"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := diskCheck{folders: []string{"/d", "/d/content"}, floor: 64 << 20, measure: func(folder string) (diskUsage, error) {
				if folder == "/d" {
					return diskUsage{isKnown: true, free: roomy}, nil
				}
				return tc.usage, tc.err
			}, free: newDiskFree(prometheus.NewRegistry())}
			err := d.run(t.Context())
			require.EqualValues(t, roomy, testutil.ToFloat64(d.free.WithLabelValues("d")))
			require.EqualValues(t, tc.usage.free, testutil.ToFloat64(d.free.WithLabelValues("content")))
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			var unready *unreadyError
			require.ErrorAs(t, err, &unready)
			require.Equal(t, tc.want, err.Error())
			require.NotEmpty(t, unready.remedy)
		})
	}
}

func TestDiskCheck_MeasuresAWriteAtMostEvery30Seconds(t *testing.T) {
	folder := t.TempDir()
	d := diskCheck{folders: []string{folder}, measure: func(string) (diskUsage, error) { return diskUsage{}, nil }, syncs: newDiskSyncs(prometheus.NewRegistry())}
	measured := func() uint64 {
		var m dto.Metric
		require.NoError(t, d.syncs.Write(&m))
		return m.GetHistogram().GetSampleCount()
	}
	for range 3 {
		require.NoError(t, d.run(t.Context()))
	}
	require.EqualValues(t, 1, measured())
	d.synced = d.synced.Add(-syncEvery)
	require.NoError(t, d.run(t.Context()))
	require.EqualValues(t, 2, measured())
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDataFolders_AreTheFoldersThatTheNodeWrites(t *testing.T) {
	cfg := config.Default()
	cfg.Data = "/d"
	require.Equal(t, []string{"/d", "/d/cosmos", "/d/bus", "/d/content", "/d/exchange"}, dataFolders(&cfg))
	cfg.Cosmos.Endpoint = "https://a.example/"
	require.Equal(t, []string{"/d", "/d/bus", "/d/content", "/d/exchange"}, dataFolders(&cfg))
	cfg.ServiceBus.Namespace, cfg.Blob.Endpoint = "b.example", "https://c.example/"
	require.Empty(t, dataFolders(&cfg))
	cfg = config.Default()
	cfg.InMemory = true
	require.Empty(t, dataFolders(&cfg))
}
