package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// benchActors is the number of actors to which the events of a benchmark are
// sent in turn.
const benchActors = 1000

// benchEvents returns events with payloads, addressed to many actors.
func benchEvents(from, count int) []byte {
	var b strings.Builder
	for n := from; n < from+count; n++ {
		fmt.Fprintf(&b, `%c{"id":"00000000-0000-4000-8000-%012d","recipient":"actor-%d","origin":"Charges","contentType":"ChargePriceList",`+
			`"documentType":"D18","supportsBundling":true,"weight":1,"payload":{"n":%d,"noise":"%016x%016x%016x%016x"}}`,
			listMark(n == from), n, n/1000%benchActors, n, rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64())
	}
	return []byte(b.String() + "]")
}

// listMark returns the character that precedes an item of a JSON list.
func listMark(isFirst bool) rune {
	if isFirst {
		return '['
	}
	return ','
}

// peekAndSend peeks 50 times per second and sends 1,000 events per second until
// ctx ends. It returns how long the Peeks took.
func peekAndSend(ctx context.Context, b *testing.B, hub *hubclient.Client, next *int) (took []time.Duration) {
	var mu sync.Mutex
	var load errgroup.Group
	load.SetLimit(64)
	var sending sync.WaitGroup
	sending.Go(func() {
		for batches := rate.NewLimiter(20, 1); batches.Wait(ctx) == nil; *next += 50 {
			if _, err := hub.SendEvents(context.WithoutCancel(ctx), benchEvents(*next, 50)); err != nil {
				b.Error(err)
			}
		}
	})
	for peeks := rate.NewLimiter(50, 1); peeks.Wait(ctx) == nil; {
		actor := fmt.Sprint("actor-", rand.IntN(benchActors))
		load.Go(func() error {
			began := time.Now()
			_, _, err := hub.Peek(context.WithoutCancel(ctx), actor, hubclient.PeekOptions{})
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			return err
		})
	}
	sending.Wait()
	if err := load.Wait(); err != nil {
		b.Error(err)
	}
	return took
}

// quantile returns a quantile of durations.
func quantile(all []time.Duration, part float64) time.Duration {
	slices.Sort(all)
	if len(all) == 0 {
		return 0
	}
	return all[min(int(float64(len(all))*part), len(all)-1)]
}

// BenchmarkBackup_OfARunningHub backs up a hub with 1,000,000 events, restores
// the archive and checks it, and measures Peek before and during the backup.
// MESSAGEHUB_BACKUP_EVENTS sets another number of events.
func BenchmarkBackup_OfARunningHub(b *testing.B) {
	events := 1_000_000
	if text := os.Getenv("MESSAGEHUB_BACKUP_EVENTS"); text != "" {
		if _, err := fmt.Sscan(text, &events); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		measureBackup(b, events)
	}
}

func measureBackup(b *testing.B, events int) {
	folder := b.TempDir()
	h := startHub(b, "--data", filepath.Join(folder, "data"), "--log-level", "warn")
	hub, err := hubclient.New(h.url(b))
	if err != nil {
		b.Fatal(err)
	}
	defer hub.Close()
	next := 1
	var load errgroup.Group
	load.SetLimit(4)
	for ; next <= events; next += 1000 {
		from := next
		load.Go(func() error {
			_, err := hub.SendEvents(b.Context(), benchEvents(from, 1000))
			return err
		})
	}
	if err := load.Wait(); err != nil {
		b.Fatal(err)
	}

	const span = 30 * time.Second // duration of each measurement
	ctx, cancel := context.WithTimeout(b.Context(), span)
	before := peekAndSend(ctx, b, hub, &next)
	cancel()

	file := filepath.Join(folder, "hub.backup")
	var took time.Duration
	ctx, cancel = context.WithCancel(b.Context())
	acknowledged := next - 1
	var backing sync.WaitGroup
	backups := 0
	backing.Go(func() { // backups run one after another, so that enough Peeks are measured during backups
		defer cancel()
		for until := time.Now().Add(span); time.Now().Before(until); backups++ {
			began := time.Now()
			if out, err := backupCommandOf(b, "backup", "--url", hub.Base, file).CombinedOutput(); err != nil {
				b.Errorf("%v: %s", err, out)
				return
			}
			took = max(took, time.Since(began))
		}
	})
	beside := peekAndSend(ctx, b, hub, &next)
	backing.Wait()
	if err := h.stop(b, syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}

	archive, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	restored := filepath.Join(folder, "restored")
	if out, err := backupCommandOf(b, "restore", file, "--data", restored).CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	restoring := time.Since(began)
	found := checkRestored(b, restored)
	if found < acknowledged {
		b.Errorf("%d events were acknowledged before the backup, and %d are restored", acknowledged, found)
	}
	p99, p99Beside := quantile(before, 0.99), quantile(beside, 0.99)
	b.ReportMetric(float64(acknowledged), "acknowledged")
	b.ReportMetric(float64(found), "restored-events")
	b.ReportMetric(took.Seconds(), "s/backup")
	b.ReportMetric(float64(backups), "backups")
	b.ReportMetric(restoring.Seconds(), "s/restore")
	b.ReportMetric(float64(archive.Size())/1e6, "MB-archive")
	b.ReportMetric(p99.Seconds()*1000, "ms-p99-alone")
	b.ReportMetric(p99Beside.Seconds()*1000, "ms-p99-beside")
	b.ReportMetric(quantile(before, 0.5).Seconds()*1000, "ms-p50-alone")
	b.ReportMetric(quantile(beside, 0.5).Seconds()*1000, "ms-p50-beside")
	b.ReportMetric(float64(len(beside)), "peeks-beside")
	b.ReportMetric(float64(p99Beside)/float64(p99), "of-p99-alone")
}

// checkRestored checks and repairs a restored folder as the help of restore
// says. A second check must find nothing. It returns the number of events in
// the folder.
func checkRestored(b *testing.B, data string) (events int) {
	if out, err := backupCommandOf(b, "check", "--data", data, "--repair").CombinedOutput(); err != nil {
		b.Fatalf("check --repair: %v: %s", err, out)
	}
	out, err := backupCommandOf(b, "check", "--data", data, "--json").Output()
	if err != nil {
		b.Fatalf("check: %v: %s", err, out)
	}
	var report struct{ Events, Found int }
	if err := json.Unmarshal(out, &report); err != nil || report.Found > 0 {
		b.Fatalf("check: %v: %s", err, out)
	}
	return report.Events
}
