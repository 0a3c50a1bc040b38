package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// openOnRequest opens a bundle in content mode request.
func (s *trust) openOnRequest(node *Repository) repositorytest.PeekedBundle {
	s.Helper()
	b, err := repositorytest.Peek(context.Background(), s.stores(node), s.actor, allGroups, domain.BundleID{}, repositorytest.OnRequest)
	require.NoError(s, err)
	return b
}

func (s *trust) answerBundle(node *Repository, id domain.BundleID, object string) domain.Bundle {
	s.Helper()
	b, err := node.Answer(context.Background(), s.actor, id, object, domain.Body{Length: int64(len(object))})
	require.NoError(s, err)
	return b
}

// inEveryAge runs test for 0 to 3 stale reads that are 0 to 7 commits old. Reads become stale when test
// calls makeOld.
func inEveryAge(t *testing.T, test func(s *trust, makeOld func())) {
	for age := range int32(8) {
		for reads := range int32(4) {
			t.Run(fmt.Sprintf("%d reads are %d commits old", reads, age), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var old staleReads
					s := &trust{T: t, actor: repositorytest.NewActor(), rig: newRig(t, embedded.Options{Stale: old.commitsBehind})}
					test(s, func() { old.age.Store(age); old.left.Store(reads) })
				})
			})
		}
	}
}

func TestAStaleRead_DoesNotMakeABundleUnanswered(t *testing.T) {
	inEveryAge(t, func(s *trust, makeOld func()) {
		node := s.node(small, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		b := s.openOnRequest(node)
		_, err := node.Fail(s.Context(), s.actor, b.ID, domain.ContentFailure{Reason: "busy"})
		require.NoError(s, err)
		s.answerBundle(node, b.ID, "made")
		makeOld()
		_, err = node.Acknowledge(s.Context(), s.actor, b.ID)
		require.NoError(s, err)
	})
}

func TestAnUnansweredBundle_IsNotDequeuedDespiteStaleReads(t *testing.T) {
	inEveryAge(t, func(s *trust, makeOld func()) {
		node := s.node(small, false)
		s.save(node, 0, repositorytest.Events(2, s.actor, repositorytest.WithoutBundling))
		s.answerBundle(node, s.openOnRequest(node).ID, "made")
		_, err := node.Acknowledge(s.Context(), s.actor, s.openOnRequest(node).ID) // the second Peek returns the open bundle, now answered
		require.NoError(s, err)
		b := s.openOnRequest(node)
		makeOld()
		_, err = node.Acknowledge(s.Context(), s.actor, b.ID)
		require.ErrorIs(s, err, repository.ErrUnanswered)
	})
}

func TestPeek_ReturnsTheStoredAnswerDespiteStaleReads(t *testing.T) {
	inEveryAge(t, func(s *trust, makeOld func()) {
		node, line := s.tappedNode(small)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		b := s.openOnRequest(node)
		s.answerBundle(node, b.ID, "made")
		line.setBefore(atNth(1, isWrite, func() error { makeOld(); return nil })) // reads after the first write are stale
		next, err := node.NextUnacknowledged(s.Context(), s.actor, allGroups)
		require.NoError(s, err)
		require.Equal(s, "made", next.Open.Object)
		line.setBefore(atNth(1, isWrite, func() error { makeOld(); return nil }))
		found, _, err := node.Find(s.Context(), s.actor, b.ID)
		require.NoError(s, err)
		require.Equal(s, "made", found.Object)
	})
}

func TestDequeue_WithALostReplySucceedsDespiteAStaleRead(t *testing.T) {
	inEveryAge(t, func(s *trust, makeOld func()) {
		node := s.node(small, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		b := s.openOnRequest(node)
		s.answerBundle(node, b.ID, "made")
		var seen atomic.Int32
		s.line.Break(func(_ int, req *http.Request) faulty.Fault {
			if req.Header.Get("x-ms-cosmos-is-batch-request") != "" && seen.Add(1) == 1 {
				makeOld()
				return faulty.ReplyLostAfter
			}
			return faulty.None
		})
		closed, err := node.Acknowledge(s.Context(), s.actor, b.ID)
		require.NoError(s, err)
		require.Equal(s, "made", closed.Object)
		notices, err := node.Notices(s.Context(), s.actor)
		require.NoError(s, err)
		if len(notices) > 0 { // a stale read may return no notices
			require.Equal(s, []domain.BundleID{b.ID}, bundlesOf(notices))
		}
	})
}

func TestALateOrSecondAnswer_ChangesNothingDespiteStaleReads(t *testing.T) {
	inEveryAge(t, func(s *trust, makeOld func()) {
		node := s.node(small, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		b := s.openOnRequest(node)
		s.answerBundle(node, b.ID, "first")
		makeOld()
		require.Equal(s, "first", s.answerBundle(node, b.ID, "second").Object)
		failed, err := node.Fail(s.Context(), s.actor, b.ID, domain.ContentFailure{Reason: "late"})
		require.NoError(s, err)
		require.Equal(s, "first", failed.Object)
		require.Zero(s, failed.ContentFailure)

		_, err = node.Acknowledge(s.Context(), s.actor, b.ID)
		require.NoError(s, err)
		makeOld()
		_, err = node.Answer(s.Context(), s.actor, b.ID, "late", domain.Body{})
		require.Equal(s, domain.NotFound, domain.KindOf(err), "%v", err)
		_, err = node.Fail(s.Context(), s.actor, b.ID, domain.ContentFailure{Reason: "late"})
		require.Equal(s, domain.NotFound, domain.KindOf(err), "%v", err)

		again, err := node.Replay(s.Context(), s.actor, b.Group, becauseOfATest)
		require.NoError(s, err)
		require.Equal(s, "first", again.Object)
		makeOld()
		require.Equal(s, "first", s.answerBundle(node, b.ID, "third").Object)
	})
}

// Another node may find and answer a bundle before the call that opened the bundle receives its reply.
func TestAdd_RecognizesItsBundleAfterAnAnswer(t *testing.T) {
	s := newTrust(t)
	other := s.node(small, false)
	node, line := s.tappedNode(small)
	s.save(other, 0, repositorytest.Events(1, s.actor))
	next, err := node.NextUnacknowledged(t.Context(), s.actor, allGroups)
	require.NoError(t, err)
	b, _, err := repositorytest.MakeBundle(t.Context(), next.Run)
	require.NoError(t, err)
	repositorytest.OnRequest(&b)

	isBatch := func(req *http.Request) bool { return req.Header.Get("x-ms-cosmos-is-batch-request") != "" }
	var lost atomic.Bool
	s.line.Break(func(_ int, req *http.Request) faulty.Fault {
		if isBatch(req) && lost.CompareAndSwap(false, true) {
			return faulty.ReplyLostAfter
		}
		return faulty.None
	})
	line.setBefore(atNth(2, isBatch, func() error { s.answerBundle(other, b.ID, "made"); return nil }))
	_, err = node.Add(t.Context(), b, next.Run)
	require.NoError(t, err)
	require.True(t, lost.Load())
}

// isBundlePatch reports whether req records an answer or a failure.
func isBundlePatch(req *http.Request) bool {
	return req.Method == http.MethodPatch && strings.Contains(req.URL.Path, "/colls/"+bundlesContainer+"/")
}

func TestAFailureWhoseReplyIsLostCountsOnce(t *testing.T) {
	inEveryAge(t, func(s *trust, makeOld func()) {
		node := s.node(small, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		b := s.openOnRequest(node)
		var seen atomic.Int32
		s.line.Break(func(_ int, req *http.Request) faulty.Fault {
			if isBundlePatch(req) && seen.Add(1) == 1 {
				makeOld()
				return faulty.ReplyLostAfter
			}
			return faulty.None
		})
		failed, err := node.Fail(s.Context(), s.actor, b.ID, domain.ContentFailure{Reason: "busy", Text: "a while"})
		require.NoError(s, err)
		require.Equal(s, domain.ContentFailure{Failures: 1, Reason: "busy", Text: "a while"}, failed.ContentFailure)
	})
}

func TestAnAnswerWithoutAReply_IsUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTrust(t)
		node := s.node(small, false)
		s.save(node, 0, repositorytest.Events(1, s.actor))
		b := s.openOnRequest(node)
		s.line.Break(func(_ int, req *http.Request) faulty.Fault {
			if isBundlePatch(req) {
				return faulty.ReplyLostAfter
			}
			return faulty.Unavailable
		})
		_, err := node.Answer(t.Context(), s.actor, b.ID, "made", domain.Body{})
		require.Equal(t, domain.Uncertain, domain.KindOf(err), "%v", err)
		s.line.Break(nil)
		require.Equal(t, "made", s.answerBundle(node, b.ID, "made-again").Object)
	})
}

// An answer does not write the gate, so a concurrent Peek is not refused.
func TestAnAnswer_DoesNotConflictWithAPeek(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	s.save(node, 0, repositorytest.Events(1, s.actor))
	b := s.openOnRequest(node)
	s.save(node, 0, repositorytest.Events(1, s.actor, repositorytest.WithOrigin(domain.Charges)))
	next, err := node.NextUnacknowledged(t.Context(), s.actor, []domain.Group{groupOf(t, domain.Charges)})
	require.NoError(t, err)
	other, _, err := repositorytest.MakeBundle(t.Context(), next.Run)
	require.NoError(t, err)
	s.answerBundle(node, b.ID, "made")
	_, err = node.Add(t.Context(), other, next.Run)
	require.NoError(t, err)
}

func TestABundleWithoutEventsIsDamage(t *testing.T) {
	s := newTrust(t)
	node := s.node(small, false)
	s.save(node, 0, repositorytest.Events(1, s.actor))
	b := s.openOnRequest(node)
	doc := &bundleDoc{}
	etag, err := node.beginCall("test").Read(t.Context(), node.db.bundles, s.actor.String(), b.ID.String(), doc)
	require.NoError(t, err)
	doc.Ranges = nil
	_, err = node.beginCall("test").Put(t.Context(), node.db.bundles, s.actor.String(), b.ID.String(), etag, doc)
	require.NoError(t, err)
	_, err = node.NextUnacknowledged(t.Context(), s.actor, allGroups)
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
	_, err = node.Acknowledge(t.Context(), s.actor, b.ID)
	require.Equal(t, domain.Damaged, domain.KindOf(err), "%v", err)
}
