package repositorytest

import (
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// markGone marks the content of a bundle as gone, and returns the bundle with the mark.
func (f *fixture) markGone(b PeekedBundle) PeekedBundle {
	f.Helper()
	b.Gone = true
	stored, err := f.Answers.MarkGone(f.ctx, f.actor, b.ID, b.Object)
	require.NoError(f, err)
	f.requireSameBundle(b.Bundle, stored)
	require.True(f, b.LacksContent())
	require.False(f, b.IsUnanswered())
	return b
}

// replaceContent replaces the content of a bundle, which is marked as gone, and returns the bundle with
// the new content.
func (f *fixture) replaceContent(b PeekedBundle, object string) PeekedBundle {
	f.Helper()
	gone := b.Object
	b.Object, b.Gone, b.ContentFailure = object, false, domain.ContentFailure{}
	b.Body = domain.Body{Length: int64(len(object)), Digest: domain.Digest{3: 7}}
	stored, err := f.Answers.ReplaceAnswer(f.ctx, f.actor, b.ID, gone, object, b.Body)
	require.NoError(f, err)
	f.requireSameBundle(b.Bundle, stored)
	return b
}

// requireUnchanged requires that each of the late calls leaves b unchanged.
func (f *fixture) requireUnchanged(b PeekedBundle, calls ...func() (domain.Bundle, error)) {
	f.Helper()
	for _, call := range calls {
		stored, err := call()
		require.NoError(f, err)
		f.requireSameBundle(b.Bundle, stored)
	}
	f.wantEverywhere(b)
}

func (f *fixture) markGoneFunc(b PeekedBundle, object string) func() (domain.Bundle, error) {
	return func() (domain.Bundle, error) { return f.Answers.MarkGone(f.ctx, f.actor, b.ID, object) }
}

func (f *fixture) replaceContentFunc(b PeekedBundle, gone string) func() (domain.Bundle, error) {
	return func() (domain.Bundle, error) {
		return f.Answers.ReplaceAnswer(f.ctx, f.actor, b.ID, gone, "late", domain.Body{Length: 9})
	}
}

func (f *fixture) answerFunc(b PeekedBundle, object string) func() (domain.Bundle, error) {
	return func() (domain.Bundle, error) {
		return f.Answers.Answer(f.ctx, f.actor, b.ID, object, domain.Body{Length: 9})
	}
}

var replaceAnswerRules = []contractRule{
	{name: "a mark is returned by every call, until another answer replaces the content", test: func(f *fixture) {
		events := f.saveNew(3)
		b := f.answerBundle(f.openOnRequest(), "made")
		b = f.markGone(b)
		f.wantEverywhere(b)
		f.requireUnchanged(b, f.markGoneFunc(b, "made"))
		b = f.replaceContent(b, "made-again")
		f.wantEverywhere(b)
		f.wantSame(events, b.Events)
		b = f.replaceContent(f.markGone(b), "made-a-third-time")
		f.wantEverywhere(b)
		f.acknowledge(b)
		f.wantNothing()
	}},

	{name: "a marked bundle can be dequeued, skipped and released", test: func(f *fixture) {
		f.saveNew(1)
		b := f.markGone(f.answerBundle(f.openOnRequest(), "made"))
		f.acknowledge(b)
		f.saveNew(1)
		b = f.markGone(f.answerBundle(f.openOnRequest(), "made-too"))
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, b.ID, because))
		f.requireClosed(b.ID)
		events := f.saveNew(1)
		b = f.markGone(f.answerBundle(f.openOnRequest(), "made-as-well"))
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, b.ID, because))
		f.requireClosed(b.ID)
		released := f.openOnRequest()
		require.False(f, released.Gone)
		f.acknowledge(f.answerBundle(released, "made-for-another"))
		f.wantSame(events, released.Events)
	}},

	{name: "a mark of another object, or of a bundle without an answer, changes nothing", test: func(f *fixture) {
		f.saveNew(1)
		b := f.openOnRequest()
		f.requireUnchanged(b, f.markGoneFunc(b, "made"))
		b = f.answerBundle(b, "made")
		f.requireUnchanged(b, f.markGoneFunc(b, "made-not"), f.markGoneFunc(b, "mad"))
		b = f.replaceContent(f.markGone(b), "made-again")
		f.requireUnchanged(b, f.markGoneFunc(b, "made"))
		f.acknowledge(b)
	}},

	{name: "an answer replaces only the object that it names, and only if that is marked", test: func(f *fixture) {
		f.saveNew(1)
		b := f.openOnRequest()
		f.requireUnchanged(b, f.replaceContentFunc(b, "made"))
		b = f.answerBundle(b, "made")
		f.requireUnchanged(b, f.replaceContentFunc(b, "made"), f.answerFunc(b, "late"))
		b = f.markGone(b)
		f.requireUnchanged(b, f.replaceContentFunc(b, "made-not"), f.answerFunc(b, "late"), f.answerFunc(b, "made"))
		b = f.replaceContent(b, "made-again")
		f.requireUnchanged(b, f.replaceContentFunc(b, "made"), f.answerFunc(b, "late"), f.answerFunc(b, "made"))
		b = f.markGone(b)
		f.requireUnchanged(b, f.replaceContentFunc(b, "made"), f.answerFunc(b, "late"), f.answerFunc(b, "made"))
		f.acknowledge(f.replaceContent(b, "made-at-last"))
	}},

	{name: "consecutive failures after a mark are counted, and an answer resets the count", test: func(f *fixture) {
		f.saveNew(1)
		b := f.markGone(f.answerBundle(f.failContent(f.openOnRequest(), "busy"), "made"))
		require.Zero(f, b.ContentFailure)
		b = f.failContent(f.failContent(b, "no-answer"), "internal")
		f.wantEverywhere(b)
		b = f.replaceContent(b, "made-again")
		stored, err := f.Answers.Fail(f.ctx, f.actor, b.ID, domain.ContentFailure{Reason: "late"})
		require.NoError(f, err)
		f.requireSameBundle(b.Bundle, stored)
		f.acknowledge(b)
	}},

	{name: "a Replay opens a marked bundle again with its mark", test: func(f *fixture) {
		f.saveNew(2)
		b := f.markGone(f.answerBundle(f.openOnRequest(), "made"))
		f.acknowledge(b)
		_, err := f.Answers.ReplaceAnswer(f.ctx, f.actor, b.ID, "made", "late", someBody)
		f.wantRefusal(domain.NotFound, err)
		again, err := f.Admin.Replay(f.ctx, f.actor, b.Group, because)
		require.NoError(f, err)
		f.requireSameBundle(b.Bundle, again)
		f.wantEverywhere(b)
		f.acknowledge(f.replaceContent(b, "made-again"))
	}},

	{name: "unknown, foreign, closed and other bundles accept no mark and no second answer", test: func(f *fixture) {
		f.saveNew(1)
		closed := f.answerBundle(f.openOnRequest(), "made")
		f.acknowledge(closed)
		f.saveNew(1)
		inline, err := Peek(f.ctx, f.Stores, f.actor, AllGroups, domain.BundleID{}, func(b *domain.Bundle) { b.Content = domain.Inline })
		require.NoError(f, err)
		other := f.withActor(NewActor())
		other.saveNew(1)
		foreign := other.answerBundle(other.openOnRequest(), "made")
		for id, kind := range map[domain.BundleID]domain.Kind{
			NewBundleID(): domain.NotFound, closed.ID: domain.NotFound, foreign.ID: domain.NotFound, inline.ID: domain.Invalid,
		} {
			_, err := f.Answers.MarkGone(f.ctx, f.actor, id, "made")
			f.wantRefusal(kind, err)
			_, err = f.Answers.ReplaceAnswer(f.ctx, f.actor, id, "made", "late", someBody)
			f.wantRefusal(kind, err)
		}
		other.wantEverywhere(foreign)
		f.wantEverywhere(inline)
	}},

	{name: "a mark and an answer that name no object are Invalid", test: func(f *fixture) {
		f.saveNew(1)
		b := f.markGone(f.answerBundle(f.openOnRequest(), "made"))
		for _, object := range []string{"", "a//b", "a' or true or '"} {
			_, err := f.Answers.MarkGone(f.ctx, f.actor, b.ID, object)
			f.wantRefusal(domain.Invalid, err)
			_, err = f.Answers.ReplaceAnswer(f.ctx, f.actor, b.ID, object, "late", someBody)
			f.wantRefusal(domain.Invalid, err)
			_, err = f.Answers.ReplaceAnswer(f.ctx, f.actor, b.ID, "made", object, someBody)
			f.wantRefusal(domain.Invalid, err)
		}
		f.acknowledge(b)
	}},

	{name: "the recipients of a bundle are those that have it open", test: func(f *fixture) {
		f.saveNew(1)
		b := f.openOnRequest()
		other := f.withActor(NewActor())
		other.saveNew(2)
		same, err := Peek(f.ctx, f.Stores, other.actor, AllGroups, b.ID, OnRequest)
		require.NoError(f, err)
		recipients := func(want ...domain.ActorID) {
			f.Helper()
			found, err := f.Answers.BundleRecipients(f.ctx, b.ID)
			require.NoError(f, err)
			require.ElementsMatch(f, want, found)
		}
		recipients(f.actor, other.actor)
		f.acknowledge(f.answerBundle(b, "made"))
		recipients(other.actor)
		other.acknowledge(other.answerBundle(same, "made-too"))
		recipients()
		found, err := f.Answers.BundleRecipients(f.ctx, NewBundleID())
		require.NoError(f, err)
		require.Empty(f, found)
	}},

	{name: "of concurrent marks and answers one object is the content, and a Dequeue succeeds", test: func(f *fixture) {
		for range 5 {
			f.saveNew(1)
			b := f.answerBundle(f.openOnRequest(), "made")
			const domains = 4
			var dequeued atomic.Bool
			f.runTogether(domains+2, func(i int) error {
				switch i {
				case domains:
					_, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
					dequeued.Store(err == nil)
					return err
				case domains + 1:
					_, err := f.Answers.MarkGone(f.ctx, f.actor, b.ID, "made")
					return unlessClosed(err)
				}
				object := "made-by-" + string(rune('a'+i))
				stored, err := f.Answers.ReplaceAnswer(f.ctx, f.actor, b.ID, "made", object, domain.Body{Length: int64(i)})
				if err == nil && stored.Object == object && stored.Gone {
					return domain.Errorf(domain.Damaged, "the answer did not end the mark")
				}
				return unlessClosed(err)
			})
			require.True(f, dequeued.Load())
			f.requireClosed(b.ID)
			f.wantNothing()
		}
	}},
}

// unlessClosed returns err, or nil if err says that the bundle is not open.
func unlessClosed(err error) error {
	if domain.KindOf(err) == domain.NotFound {
		return nil
	}
	return err
}
