package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// readinessChecks returns the checks of /readyz, in the order in which it
// reports them.
func (n *Node) readinessChecks(cfg *config.Config) []readinessCheck {
	checks := []readinessCheck{{"store", n.store.checkAnswers}, {"containers", n.store.checkContainers}}
	free, syncs := newDiskFree(n.registry), newDiskSyncs(n.registry)
	if folders := dataFolders(cfg); len(folders) > 0 {
		disk := &diskCheck{folders: folders, floor: cfg.Limits.FreeDisk, measure: measureDisk, free: free, syncs: syncs}
		checks = append(checks, readinessCheck{"disk", disk.run})
	}
	return checks
}

// probe is an actor without data, for reads that test the store.
var probe = func() domain.ActorID {
	id, err := domain.ParseActorID("messagehub.readiness")
	if err != nil {
		panic(err)
	}
	return id
}()

// checkAnswers reads twice for an actor without data. A store that throttles
// requests counts as available, because it would throttle the requests of other
// nodes too.
func (s *nodeStore) checkAnswers(ctx context.Context) error {
	_, err := s.NextUnacknowledged(ctx, probe, s.groups[:1])
	switch {
	case err == nil, errors.Is(err, domain.ErrNoData), errors.Is(err, repository.ErrFrozen), domain.KindOf(err) == domain.Busy:
		return nil
	case domain.KindOf(err) == domain.Unavailable:
		return &unreadyError{"the store does not answer", "check that the Cosmos account is available and the hub can reach it", err}
	}
	return &unreadyError{"the store refuses reads", "see the log of the hub", err}
}

// checkContainers reports a container that is missing, or has other properties
// than the hub needs. The result is usually cached.
func (s *nodeStore) checkContainers(ctx context.Context) error {
	if err := s.ContainersFault(ctx); err != nil {
		return &unreadyError{reasonOfContainers(err), remedyOfContainers, nil}
	}
	return nil
}

// warnings returns the warnings of /readyz. A warning does not make the node
// unready.
func (n *Node) warnings() []api.FailedCheck {
	return slices.Concat(n.store.warnings(), n.store.frozenWarnings(), n.push.warnings(), n.objects.warnings(), n.parties.warnings())
}

// warnings returns the store's warnings of /readyz. A mailbox with a newer
// format is only a warning; otherwise, during an upgrade, the first such
// mailbox would make all older nodes unready. The warning does not name the
// mailboxes, because anyone may call /readyz; the log and messagehub check do.
func (s *nodeStore) warnings() []api.FailedCheck {
	_, n := s.NewerFormats(0)
	if n == 0 {
		return nil
	}
	return []api.FailedCheck{{
		Name:   "newer-format",
		Reason: fmt.Sprintf("a newer version has stored %d mailboxes in a format that this node does not know; it answers 503 for them", n),
		Remedy: "upgrade this node; its log and messagehub check name the mailboxes",
	}}
}

// dataFolders returns the folders in which the node stores data. Each may be on
// a different disk.
func dataFolders(cfg *config.Config) []string {
	if cfg.InMemory || !cfg.UsesFolder() {
		return nil
	}
	folders := []string{cfg.Data}
	if cfg.Embedded() {
		folders = append(folders, filepath.Join(cfg.Data, "cosmos"))
	}
	if cfg.EmbeddedBus() {
		folders = append(folders, filepath.Join(cfg.Data, "bus"))
	}
	if cfg.EmbeddedBlob() {
		folders = append(folders, filepath.Join(cfg.Data, "content"), filepath.Join(cfg.Data, "exchange"))
	}
	return folders
}

// A diskUsage describes the free space of a file system. It is zero on
// operating systems that do not report it.
type diskUsage struct {
	isKnown    bool
	free       uint64 // bytes that the hub can still use
	noMoreFile bool   // noMoreFile means that the file system has no free inodes
	isReadOnly bool
}

// A diskCheck fails if a disk of the data folder is full, almost full or
// read-only.
type diskCheck struct {
	folders []string
	floor   config.Size // minimum number of free bytes on each disk
	measure func(folder string) (diskUsage, error)
	free    *prometheus.GaugeVec // free bytes by folder; nil if not exported
	syncs   prometheus.Histogram // duration of a synced write, in seconds; nil if not measured

	synced time.Time // start of the last measured write
}

// syncEvery is the interval at which a synced write is measured.
const syncEvery = 30 * time.Second

func newDiskSyncs(registerer prometheus.Registerer) prometheus.Histogram {
	return promauto.With(registerer).NewHistogram(prometheus.HistogramOpts{
		Name:                        "messagehub_disk_sync_duration_seconds",
		Help:                        "How long a small write takes until it is on the disk of the data folder, measured every 30 seconds.",
		Buckets:                     []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	})
}

// measureSync measures how long a synced write to the first folder takes. It
// ignores failures, which the stores report.
func (d *diskCheck) measureSync() {
	if d.syncs == nil || time.Since(d.synced) < syncEvery {
		return
	}
	d.synced = time.Now()
	if took, err := writeSynced(d.folders[0], 1); err == nil {
		d.syncs.Observe(took.Seconds())
	}
}

func newDiskFree(registerer prometheus.Registerer) *prometheus.GaugeVec {
	return promauto.With(registerer).NewGaugeVec(prometheus.GaugeOpts{
		Name: "messagehub_disk_free_bytes",
		Help: "Bytes that the hub may still write to the disk of a data folder.",
	}, []string{"folder"})
}

func (d *diskCheck) run(context.Context) error {
	d.measureSync()
	for _, folder := range d.folders {
		usage, err := d.measure(folder)
		name := filepath.Base(folder)
		if d.free != nil && err == nil && usage.isKnown {
			d.free.WithLabelValues(name).Set(float64(usage.free))
		}
		switch {
		case err != nil:
			return &unreadyError{fmt.Sprintf("folder %s cannot be read", name), "check that its disk is mounted and the hub may read it", err}
		case !usage.isKnown:
		case usage.isReadOnly:
			return &unreadyError{fmt.Sprintf("the disk of folder %s is read-only", name), "mount it for writing", nil}
		case usage.free < uint64(d.floor): //nolint:gosec // a size is positive
			return &unreadyError{
				fmt.Sprintf("the disk of folder %s has %d MB free, less than limits.free-disk = %s", name, usage.free>>20, d.floor),
				"free space on it, or lower that setting", nil,
			}
		case usage.noMoreFile:
			return &unreadyError{fmt.Sprintf("the disk of folder %s has no inodes left", name), "remove files from it", nil}
		}
	}
	return nil
}
