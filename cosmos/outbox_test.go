package cosmos

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/client"
	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// confirmBundles creates n bundles, answers and dequeues them, and returns their ids.
func (s *trust) confirmBundles(node *Repository, n int) []domain.BundleID {
	s.Helper()
	s.save(node, 0, repositorytest.Events(n, s.actor, repositorytest.WithoutBundling))
	var ids []domain.BundleID
	for range n {
		b := s.openOnRequest(node)
		s.answerBundle(node, b.ID, "made")
		_, err := node.Acknowledge(s.Context(), s.actor, b.ID)
		require.NoError(s, err)
		ids = append(ids, b.ID)
	}
	return ids
}

func bundlesOf(notices []domain.Notice) []domain.BundleID {
	var ids []domain.BundleID
	for _, n := range notices {
		ids = append(ids, n.Bundle)
	}
	return ids
}

// A stale read must return notices that were the oldest ones of the outbox at some time.
func TestAStaleReadOfTheOutbox_HasNoGap(t *testing.T) {
	for age := range int32(10) {
		var old staleReads
		s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: old.commitsBehind})}
		node := s.node(small, false)
		ids := s.confirmBundles(node, 4)
		notices, err := node.Notices(t.Context(), s.actor)
		require.NoError(t, err)
		require.Equal(t, ids, bundlesOf(notices))
		for i, n := range notices {
			require.NoError(t, node.Delivered(t.Context(), n))
			old.age.Store(age)
			old.left.Store(1)
			seen, err := node.Notices(t.Context(), s.actor)
			require.NoError(t, err)
			old.left.Store(0)
			if len(seen) == 0 {
				require.True(t, i == len(ids)-1 || age > 0)
				continue
			}
			at := slices.Index(ids, seen[0].Bundle)
			require.LessOrEqual(t, at, i+1, "the first that was not delivered is not missing")
			require.Equal(t, ids[at:at+len(seen)], bundlesOf(seen))
		}
	}
}

func TestANoticeDoesNotExpireWithItsBundle(t *testing.T) {
	k := newKeeper(t, 3)
	b := k.confirmBundles(1)[0]
	k.passTime(30 * day)
	k.expireDocuments()
	k.runSweep()
	_, err := k.node.beginCall("test").Read(t.Context(), k.node.db.bundles, k.actor.String(), b.ID.String(), &bundleDoc{})
	require.True(t, client.IsNotFound(err), "the bundle has expired: %v", err)
	notices, err := k.node.Notices(t.Context(), k.actor)
	require.NoError(t, err)
	require.Equal(t, []domain.BundleID{b.ID}, bundlesOf(notices))
	require.NoError(t, k.repairMailbox(k.actor), "and a check takes no offence")
}

// confirmBundles creates one bundle for each element of n, with that number of events, and answers and
// dequeues them.
func (k *keeper) confirmBundles(n ...int) []repositorytest.PeekedBundle {
	k.Helper()
	var bundles []repositorytest.PeekedBundle
	for _, events := range n {
		k.saveEvents(events)
		b := k.openAnswered()
		_, err := k.node.Acknowledge(k.Context(), k.actor, b.ID)
		require.NoError(k, err)
		k.node.AwaitHints(k.Context(), k.actor)
		bundles = append(bundles, b)
	}
	return bundles
}

// openAnswered opens a bundle and answers it.
func (k *keeper) openAnswered() repositorytest.PeekedBundle {
	k.Helper()
	b, err := repositorytest.Peek(k.Context(), k.stores(k.node), k.actor, allGroups, domain.BundleID{}, repositorytest.OnRequest)
	require.NoError(k, err)
	_, err = k.node.Answer(k.Context(), k.actor, b.ID, "made", domain.Body{})
	require.NoError(k, err)
	return b
}

func TestWaiting_FindsOthersDespiteUndeliverableNotices(t *testing.T) {
	r := newRig(t, embedded.Options{})
	node := r.node(Options{SweepEvery: -1}, false)
	recipients, before := make(map[domain.ActorID]bool), time.Now()
	for n := range 7 {
		s := &trust{T: t, rig: r, actor: repositorytest.NewActor()}
		s.confirmBundles(node, 1+n*n%5)
		recipients[s.actor] = true
	}
	later := time.Now().Add(time.Hour)
	for most := 1; most <= 8; most++ {
		found := make(map[domain.ActorID]bool)
		for calls := 0; len(found) < len(recipients); calls++ {
			require.Less(t, calls, 40, "%d at a time: found %d of %d", most, len(found), len(recipients))
			waiting, err := node.Waiting(t.Context(), later, most)
			require.NoError(t, err)
			require.NotEmpty(t, waiting)
			require.LessOrEqual(t, len(waiting), most)
			for _, recipient := range waiting {
				require.True(t, recipients[recipient])
				found[recipient] = true
			}
		}
	}
	waiting, err := node.Waiting(t.Context(), before, 10)
	require.NoError(t, err)
	require.Empty(t, waiting)
}

func TestWaiting_IgnoresAnInvalidPosition(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	s.confirmBundles(node, 1)
	nowhere := "not a place"
	node.waitingFrom.Store(&nowhere)
	waiting, err := node.Waiting(t.Context(), time.Now().Add(time.Hour), 10)
	require.NoError(t, err)
	require.Equal(t, []domain.ActorID{s.actor}, waiting)
}

// A check must not report a finding if notices wait because a domain is slow.
func TestCheck_FindsNothingInWaitingNotices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTrust(t)
		node := s.node(small, false)
		s.confirmBundles(node, 2)
		again, err := node.Replay(t.Context(), s.actor, groupOf(t, domain.TimeSeries), becauseOfATest)
		require.NoError(t, err)
		require.NotEmpty(t, again.Object)
		s.save(node, 0, repositorytest.Events(1, s.actor, repositorytest.WithOrigin(domain.Charges)))
		b, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, []domain.Group{groupOf(t, domain.Charges)}, domain.BundleID{}, repositorytest.OnRequest)
		require.NoError(t, err)
		_, err = node.Fail(t.Context(), s.actor, b.ID, domain.ContentFailure{Reason: "busy"})
		require.NoError(t, err)
		s.save(node, 0, repositorytest.Events(2, s.actor, repositorytest.WithOrigin(domain.Aggregations)))
		aggregations := []domain.Group{groupOf(t, domain.Aggregations)}
		skipped, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, aggregations, domain.BundleID{}, repositorytest.OnRequest)
		require.NoError(t, err)
		require.NoError(t, node.Skip(t.Context(), s.actor, skipped.ID, becauseOfATest))

		report, err := node.Check(t.Context(), CheckOptions{Recipient: s.actor})
		require.NoError(t, err)
		for _, f := range report.Findings {
			require.False(t, f.Damage, "%v", f)
		}
		require.NoError(t, s.repairMailbox(s.actor))
	})
}

// TestAnswersAndNotices_CostTheExpectedRequests compares the number of requests of each call with an expected number.
func TestAnswersAndNotices_CostTheExpectedRequests(t *testing.T) {
	for _, tc := range []struct {
		name        string
		pessimistic bool
		dequeue     float64 // request units
	}{{"by published query metrics", false, 26.123}, {"pessimistic", true, 27.1}} {
		t.Run(tc.name, func(t *testing.T) {
			s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Pessimistic: tc.pessimistic})}
			node := s.node(Options{Exclusive: true, SweepEvery: -1}, false)
			cost := func(what string, requests int64, do func() error) float64 {
				units, before := s.engine.RequestUnits(), s.engine.Requests()
				require.NoError(t, do())
				units = s.engine.RequestUnits() - units
				t.Logf("%-40s %d requests, %5.2f RU", what, s.engine.Requests()-before, units)
				require.Equal(t, requests, s.engine.Requests()-before, what)
				return units
			}
			dequeue := func(id domain.BundleID) func() error {
				return func() error { _, err := node.Acknowledge(t.Context(), s.actor, id); return err }
			}
			s.save(node, 0, repositorytest.Events(1, s.actor))
			manifest, err := repositorytest.Peek(t.Context(), s.stores(node), s.actor, allGroups, domain.BundleID{})
			require.NoError(t, err)
			plain := cost("Dequeue of a manifest", 3, dequeue(manifest.ID))
			require.InDelta(t, tc.dequeue, plain, 0.01)

			s.save(node, 0, repositorytest.Events(1, s.actor))
			b := s.openOnRequest(node)
			cost("Fail", 1, func() error {
				_, err := node.Fail(t.Context(), s.actor, b.ID, domain.ContentFailure{Reason: "no-answer"})
				return err
			})
			answer := func() error {
				_, err := node.Answer(t.Context(), s.actor, b.ID, "payloads/0123/made", domain.Body{Length: 1})
				return err
			}
			cost("Answer", 1, answer)
			cost("Answer that is not the first", 2, answer)
			var notices []domain.Notice
			look := func() (err error) { notices, err = node.Notices(t.Context(), s.actor); return err }
			cost("Notices, none", 1, look)
			onRequest := cost("Dequeue of a bundle on request", 3, dequeue(b.ID))
			require.Less(t, onRequest-plain, 7.0, "one more create in the same batch")
			cost("Notices, one", 1, look)
			require.Len(t, notices, 1)
			wait := func() error { _, err := node.Waiting(context.Background(), time.Now().Add(time.Hour), 100); return err }
			cost("Waiting, one", 1, wait)
			cost("Delivered", 1, func() error { return node.Delivered(t.Context(), notices[0]) })
			cost("Waiting, none", 1, wait)
		})
	}
}

func TestNotices_HaveDistinctIDs(t *testing.T) {
	names := []string{"a", "b", "a-b", "ab", "a1", "A", "a.1", "a_b"}
	audiences := []domain.Audience{domain.ForDomain, domain.ForSubscribers}
	ids := make(map[string]string)
	for _, to := range audiences {
		for _, group := range names {
			for _, number := range []int64{1, 2, 10, 11, 1 << 60} {
				id := noticeID(to, group, number)
				of := fmt.Sprint(to, " ", group, " ", number)
				require.NotContains(t, ids, id, of)
				ids[id] = of
				require.Less(t, id, noticePrefixEnd(to, group))
				for _, audience := range audiences {
					for _, other := range names {
						inside := id > noticePrefix(audience, other) && id < noticePrefixEnd(audience, other)
						require.Equal(t, audience == to && other == group, inside, "%s among those of %d %s", id, audience, other)
					}
				}
			}
			require.Less(t, noticeID(to, group, 9), noticeID(to, group, 10))
		}
	}
}
