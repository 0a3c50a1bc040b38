package hub_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

// A noticeReceiver is a Notifier that records notices. Each test decides which of them fail.
type noticeReceiver struct {
	mu    sync.Mutex
	got   []domain.Notice
	fault func(n domain.Notice) error
}

func (p *noticeReceiver) Notify(_ context.Context, n domain.Notice) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		if err := p.fault(n); err != nil {
			return err
		}
	}
	p.got = append(p.got, n)
	return nil
}

func (p *noticeReceiver) bundles() []domain.BundleID {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]domain.BundleID, len(p.got))
	for i := range p.got {
		ids[i] = p.got[i].Bundle
	}
	return ids
}

// dequeueNew sends events, then peeks and dequeues n bundles. It returns the bundle ids.
func (w *world) dequeueNew(n int) []domain.BundleID {
	w.Helper()
	ids := make([]domain.BundleID, n)
	for i := range ids {
		w.sendNew(1, charges)
		peeked := w.peekBundle()
		w.dequeueBundle(peeked)
		ids[i] = peeked.ID
	}
	return ids
}

// runRelay runs a NoticeRelay until the test ends or stop is called.
func runRelay(t *testing.T, c *hub.NoticeRelay) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

// newNoticeWorld returns a world whose hub has a NoticeRelay. The relay is not running yet.
func newNoticeWorld(t *testing.T, fault func(domain.Notice) error) (*world, *hub.NoticeRelay, *noticeReceiver) {
	box := &noticeReceiver{fault: fault}
	w, d := newContentWorld(t)
	c := hub.NewNoticeRelay(w.store, box, hub.NoticeRelayOptions{})
	return askingOver(t, w.store, d, func(o *hub.Options) { o.NoticeRelay = c }), c, box
}

func TestNoticeRelay_KeepsTheOrderOfDequeues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c, box := newNoticeWorld(t, nil)
		defer w.hub.Close()
		before := w.dequeueNew(3)
		stop := runRelay(t, c)
		defer stop()
		synctest.Wait()
		require.Equal(t, before, box.bundles(), "those that were told of before it ran")
		after := w.dequeueNew(3)
		synctest.Wait()
		require.Equal(t, append(before, after...), box.bundles(), "at once, and each once")
		require.Equal(t, w.actor, box.got[0].Recipient)
		require.Equal(t, domain.Charges, box.got[0].Origin)
		require.Contains(t, box.got[0].List, before[0].String())
	})
}

func TestNoticeRelay_StopsBehindAFailedNotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		var first domain.BundleID // the only bundle whose notice fails; guarded by the mutex of the noticeReceiver
		w, c, box := newNoticeWorld(t, func(n domain.Notice) error {
			if first == (domain.BundleID{}) {
				first = n.Bundle
			}
			if away.Load() && n.Bundle == first {
				return domain.Errorf(domain.Unavailable, "no bus")
			}
			return nil
		})
		defer w.hub.Close()
		stop := runRelay(t, c)
		defer stop()
		ids := w.dequeueNew(5)
		synctest.Wait()
		require.Empty(t, box.bundles())
		away.Store(false)
		<-time.After(time.Minute) // in this time, the relay looks again
		require.Equal(t, ids, box.bundles())
	})
}

func TestStuckNotices_AreCountedUntilTheyAreDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		w, c, box := newNoticeWorld(t, func(domain.Notice) error {
			if away.Load() {
				return domain.Errorf(domain.Unavailable, "the domain is away")
			}
			return nil
		})
		stop := runRelay(t, c)
		defer stop()
		require.Zero(t, c.Stuck())
		began := time.Now()
		ids := w.dequeueNew(3)
		<-time.After(time.Minute)
		stuck := c.Stuck()
		require.Equal(t, stuck, c.StuckOf(w.actor), "there is no other recipient")
		report, err := hub.NewOperator(w.hub, w.store, nil).Notices(t.Context(), w.actor)
		require.NoError(t, err)
		require.Equal(t, stuck, report.Stuck)
		require.Len(t, report.Waiting, stuck.Notices)
		require.Equal(t, 3, stuck.Notices)
		require.WithinDuration(t, began, stuck.Oldest, time.Second)
		away.Store(false)
		<-time.After(time.Minute)
		require.Equal(t, ids, box.bundles())
		require.Zero(t, c.Stuck())
	})
}

func TestNoticeRelay_FindsNoticesOfOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := newNoticeWorld(t, nil) // the NoticeRelay of this world is never run
		defer w.hub.Close()
		ids := w.dequeueNew(3)
		box := &noticeReceiver{}
		stop := runRelay(t, hub.NewNoticeRelay(w.store, box, hub.NoticeRelayOptions{}))
		defer stop()
		<-time.After(time.Minute)
		require.Equal(t, ids, box.bundles())
	})
}

// forgetfulOutbox fails to record deliveries, as if the node died right after it notified the domain.
type forgetfulOutbox struct {
	repository.Outbox
	times int
}

func (f *forgetfulOutbox) Delivered(ctx context.Context, n domain.Notice) error {
	if f.times--; f.times >= 0 {
		return domain.Errorf(domain.Uncertain, "died")
	}
	return f.Outbox.Delivered(ctx, n)
}

// A damagedOutbox returns waiting recipients and an error, as if a part of the outbox could not be read.
type damagedOutbox struct{ repository.Outbox }

func (o damagedOutbox) Waiting(ctx context.Context, before time.Time, most int) ([]domain.ActorID, error) {
	waiting, err := o.Outbox.Waiting(ctx, before, most)
	if err == nil {
		err = domain.Errorf(domain.Damaged, "a notice cannot be read")
	}
	return waiting, err
}

func TestNoticeRelay_DamagedNoticeDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, box := newNoticeWorld(t, nil)
		defer w.hub.Close()
		ids := w.dequeueNew(2)
		stop := runRelay(t, hub.NewNoticeRelay(damagedOutbox{w.store}, box, hub.NoticeRelayOptions{})) // no Dequeue has notified this relay
		defer stop()
		<-time.After(2 * time.Minute) // in this time, the relay looks for notices
		require.Equal(t, ids, box.bundles())
	})
}

func TestNoticeRelay_RepeatsANoticeUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := newNoticeWorld(t, nil)
		defer w.hub.Close()
		ids := w.dequeueNew(2)
		box := &noticeReceiver{}
		stop := runRelay(t, hub.NewNoticeRelay(&forgetfulOutbox{w.store, 1}, box, hub.NoticeRelayOptions{}))
		defer stop()
		<-time.After(2 * time.Minute)
		require.Equal(t, []domain.BundleID{ids[0], ids[0], ids[1]}, box.bundles(), "at least once, and none before it")
		require.Equal(t, box.got[0], box.got[1])
	})
}

// oldOutbox simulates stale reads, which still return delivered notices.
type oldOutbox struct {
	repository.Outbox
	seen []domain.Notice
}

func (o *oldOutbox) Notices(ctx context.Context, recipient domain.ActorID) ([]domain.Notice, error) {
	if o.seen == nil {
		var err error
		if o.seen, err = o.Outbox.Notices(ctx, recipient); err != nil {
			return nil, err
		}
	}
	return o.seen, nil
}

func TestNoticeRelay_SkipsNoticesOfStaleReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := newNoticeWorld(t, nil)
		defer w.hub.Close()
		ids := w.dequeueNew(3)
		box := &noticeReceiver{}
		c := hub.NewNoticeRelay(&oldOutbox{Outbox: w.store}, box, hub.NoticeRelayOptions{})
		c.Enqueue(w.actor)
		stop := runRelay(t, c)
		defer stop()
		synctest.Wait()
		require.Equal(t, ids, box.bundles())
	})
}

// A node with a fast clock stores a notice and does not deliver it. The other nodes must deliver it before its stored
// time.
func TestNoticeRelay_FindsANoticeWithAFutureTime(t *testing.T) {
	for name, skew := range map[string]time.Duration{"right": 0, "an hour ahead": time.Hour, "an hour behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _, _ := newNoticeWorld(t, nil) // the NoticeRelay of this hub is not run
				defer w.hub.Close()
				ids := w.dequeueNew(2)
				box := &noticeReceiver{}
				stop := runRelay(t, hub.NewNoticeRelay(w.store, box, hub.NoticeRelayOptions{
					Clock: func() time.Time { return time.Now().Add(-skew) },
				}))
				defer stop()
				<-time.After(2 * time.Minute)
				synctest.Wait()
				require.Equal(t, ids, box.bundles())
			})
		})
	}
}

func TestNoticeRelay_UnreachableDomainDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &noticeReceiver{fault: func(n domain.Notice) error {
			if n.Origin == domain.Charges {
				return fmt.Errorf("no such queue")
			}
			return nil
		}}
		w, d := newContentWorld(t)
		c := hub.NewNoticeRelay(w.store, box, hub.NoticeRelayOptions{})
		w = askingOver(t, w.store, d, func(o *hub.Options) {
			o.NoticeRelay, o.Content[domain.TimeSeries] = c, domain.Request
		})
		defer w.hub.Close()
		w.dequeueNew(3)
		w.sendNew(1, func(e *domain.Event) { e.Origin = domain.TimeSeries })
		peeked := w.peekBundle()
		w.dequeueBundle(peeked)
		stop := runRelay(t, c)
		defer stop()
		synctest.Wait()
		require.Equal(t, []domain.BundleID{peeked.ID}, box.bundles())
	})
}

// An orderedOutbox contains the notices of two removals and one Dequeue.
type orderedOutbox struct {
	repository.Outbox
	mu      sync.Mutex
	notices []domain.Notice
}

func (o *orderedOutbox) Notices(context.Context, domain.ActorID) ([]domain.Notice, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.notices), nil
}

func (o *orderedOutbox) Delivered(_ context.Context, n domain.Notice) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.notices = slices.DeleteFunc(o.notices, func(other domain.Notice) bool { return other == n })
	return nil
}

func (o *orderedOutbox) Waiting(context.Context, time.Time, int) ([]domain.ActorID, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.notices) == 0 {
		return nil, nil
	}
	return []domain.ActorID{o.notices[0].Recipient}, nil
}

func TestNoticeRelay_StuckRemovalDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		actor, err := domain.ParseActorID("5790001330552")
		require.NoError(t, err)
		outbox := &orderedOutbox{}
		for i, to := range []domain.Audience{domain.ForWatchersOfRemoval, domain.ForWatchersOfRemoval, domain.ForWatchers} {
			n := domain.Notice{Audience: to, Recipient: actor, Bundle: domain.BundleID{byte(i)}, Version: 1}
			if to == domain.ForWatchers {
				n.Number = 5
			}
			outbox.notices = append(outbox.notices, n)
		}
		stuck := outbox.notices[0]
		var isStuck atomic.Bool
		isStuck.Store(true)
		box := &noticeReceiver{fault: func(n domain.Notice) error {
			if isStuck.Load() && n == stuck {
				return domain.Errorf(domain.Unavailable, "a change before is not published")
			}
			return nil
		}}
		stop := runRelay(t, hub.NewNoticeRelay(outbox, box, hub.NoticeRelayOptions{}))
		defer stop()
		synctest.Wait()
		require.Equal(t, []domain.BundleID{{1}, {2}}, box.bundles())
		isStuck.Store(false)
		<-time.After(time.Minute)
		require.Equal(t, []domain.BundleID{{1}, {2}, {0}}, box.bundles())
	})
}
