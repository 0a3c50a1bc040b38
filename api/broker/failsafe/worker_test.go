package failsafe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/messagehub/messagehub/api/broker/failsafe"
	"github.com/messagehub/messagehub/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fakeHub lists pages of jobs. It no longer lists a job some time after the job's first
// re-trigger.
type fakeHub struct {
	*testing.T
	mu         sync.Mutex
	pages      [][]failsafe.Job
	lists      []time.Time
	retriggers map[failsafe.Job][]time.Time
	taken      time.Duration // time from a job's first re-trigger until the job is no longer listed; 0: it is always listed
	fail       func(message string) error
}

func newFakeHub(t *testing.T, pages ...[]failsafe.Job) *fakeHub {
	return &fakeHub{T: t, pages: pages, retriggers: make(map[failsafe.Job][]time.Time), fail: func(string) error { return nil }}
}

func (h *fakeHub) Overdue(_ context.Context, delay time.Duration, page string) (p failsafe.Page, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Equal(h, 2*time.Second, delay)
	h.lists = append(h.lists, time.Now())
	if err := h.fail("list"); err != nil {
		return p, err
	}
	i, _ := strconv.Atoi(page)
	if i >= len(h.pages) {
		return p, nil
	}
	for _, j := range h.pages[i] {
		if at := h.retriggers[j]; h.taken == 0 || len(at) == 0 || time.Since(at[0]) < h.taken {
			p.Jobs = append(p.Jobs, j)
		}
	}
	if i+1 < len(h.pages) {
		p.Next = strconv.Itoa(i + 1)
	}
	return p, nil
}

func (h *fakeHub) Retrigger(_ context.Context, job failsafe.Job) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retriggers[job] = append(h.retriggers[job], time.Now())
	return h.fail(job.Message)
}

// requests returns the number of received requests.
func (h *fakeHub) requests() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.lists)
	for _, at := range h.retriggers {
		n += len(at)
	}
	return n
}

// jobs returns the number of jobs that were re-triggered.
func (h *fakeHub) jobs() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.retriggers)
}

// runWorker runs a worker for the duration d.
func (h *fakeHub) runWorker(d time.Duration, opts failsafe.Options) {
	ctx, cancel := context.WithCancel(h.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		failsafe.New(h, opts).Run(ctx)
	}()
	<-time.After(d)
	cancel()
	<-ended
}

// newJobs returns n jobs.
func newJobs(prefix string, n int) (jobs []failsafe.Job) {
	for i := range n {
		jobs = append(jobs, failsafe.Job{Channel: "c", Message: fmt.Sprint(prefix, i), Consumer: "k"})
	}
	return jobs
}

func TestAWorker_RetriggersEachJobOfTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHub(t, newJobs("a", 3), nil, newJobs("b", 2))
		h.taken = time.Second
		h.runWorker(10*time.Second, failsafe.Options{})
		require.Len(t, h.retriggers, 5)
		for _, at := range h.retriggers {
			require.Len(t, at, 1)
		}
	})
}

func TestAWorker_MakesOneRequestOfARoundIfNothingIsOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHub(t)
		h.runWorker(time.Hour, failsafe.Options{})
		require.InDelta(t, 1800, h.requests(), 100, "each 2 s")
		gaps := make(map[time.Duration]bool)
		for i := range h.lists[1:] {
			gap := h.lists[i+1].Sub(h.lists[i])
			require.GreaterOrEqual(t, gap, 1600*time.Millisecond)
			require.LessOrEqual(t, gap, 2400*time.Millisecond)
			gaps[gap] = true
		}
		require.Greater(t, len(gaps), 1000, "workers do not ask at the same time")
	})
}

func TestAWorker_RetriggersAJobAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHub(t, newJobs("a", 1))
		h.runWorker(time.Minute, failsafe.Options{})
		at := h.retriggers[h.pages[0][0]]
		require.InDelta(t, 4, len(at), 1)
		for i := range at[1:] {
			require.GreaterOrEqual(t, at[i+1].Sub(at[i]), 15*time.Second, "meanwhile a node may be calling with it")
		}
	})
}

func TestAWorker_ContinuesWhereARoundHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pages [][]failsafe.Job
		for i := range 300 {
			pages = append(pages, newJobs(fmt.Sprint(i, "-"), i%2))
		}
		pages = append(pages, newJobs("many", 200))
		h := newFakeHub(t, pages...)
		h.taken = time.Second
		seen := 0
		for range 10 {
			h.runWorker(0, failsafe.Options{}) // the worker ends before its first round
		}
		require.Zero(t, h.requests())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			failsafe.New(h, failsafe.Options{}).Run(ctx)
		}()
		for h.jobs() < 350 {
			<-time.After(2400 * time.Millisecond) // time for one or two rounds
			require.LessOrEqual(t, h.requests()-seen, 2*64)
			seen = h.requests()
		}
		cancel()
		<-ended
		require.Less(t, len(h.lists), 400, "no page was listed again and again")
	})
}

func TestAWorker_BacksOffWhileTheHubIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHub(t, newJobs("a", 1))
		h.taken = time.Second
		isDown := true
		h.fail = func(string) error {
			if isDown {
				return domain.Errorf(domain.Unavailable, "busy")
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			failsafe.New(h, failsafe.Options{}).Run(ctx)
		}()
		<-time.After(time.Hour)
		h.mu.Lock()
		require.Less(t, len(h.lists), 150)
		require.LessOrEqual(t, h.lists[1].Sub(h.lists[0]), 4*time.Second)
		last := len(h.lists) - 1
		require.LessOrEqual(t, h.lists[last].Sub(h.lists[last-1]), time.Minute)
		isDown = false
		h.mu.Unlock()
		<-time.After(2 * time.Minute)
		cancel()
		<-ended
		require.Len(t, h.retriggers[h.pages[0][0]], 1)
		require.Less(t, h.lists[len(h.lists)-1].Sub(h.lists[len(h.lists)-2]), 3*time.Second)
	})
}

func TestAWorker_WaitsForAsLongAsTheHubAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHub(t)
		h.fail = func(string) error { return &failsafe.WaitError{Err: errors.New("busy"), For: 5 * time.Minute} }
		h.runWorker(time.Hour, failsafe.Options{})
		for i := range h.lists[1:] {
			require.GreaterOrEqual(t, h.lists[i+1].Sub(h.lists[i]), 5*time.Minute)
		}
		require.Greater(t, len(h.lists), 10)
	})
}

func TestAWorker_ContinuesAfterAJobThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHub(t, newJobs("a", 5))
		h.fail = func(message string) error {
			switch message {
			case "a0":
				return domain.Errorf(domain.NotFound, "gone")
			case "a1":
				return domain.Errorf(domain.Conflict, "it has ended")
			case "a3":
				return domain.Errorf(domain.Unavailable, "status 500")
			}
			return nil
		}
		h.runWorker(14*time.Second, failsafe.Options{})
		for _, j := range h.pages[0] {
			require.Len(t, h.retriggers[j], 1, j.Message)
		}
	})
}

func TestAWorker_BeginsAgainIfItsPageIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFakeHub(t, slices.Repeat([][]failsafe.Job{nil}, 100)...)
		refused := false
		h.fail = func(string) error {
			if len(h.lists) == 70 {
				refused = true
				h.pages = [][]failsafe.Job{newJobs("a", 1)}
				return domain.Errorf(domain.Invalid, "first: want another")
			}
			return nil
		}
		h.runWorker(time.Minute, failsafe.Options{})
		require.True(t, refused)
		require.NotEmpty(t, h.retriggers)
	})
}
