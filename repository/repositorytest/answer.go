package repositorytest

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// openOnRequest opens a bundle of the waiting events in content mode request.
func (f *fixture) openOnRequest(groups ...domain.Group) PeekedBundle {
	f.Helper()
	peeked, err := Peek(f.ctx, f.Stores, f.actor, orAll(groups), domain.BundleID{}, OnRequest)
	require.NoError(f, err)
	require.True(f, peeked.IsUnanswered())
	return peeked
}

// answerBundle stores object as the content of a bundle, and returns the bundle with this content.
func (f *fixture) answerBundle(b PeekedBundle, object string) PeekedBundle {
	f.Helper()
	b.Object, b.Body, b.ContentFailure = object, someBody, domain.ContentFailure{}
	stored, err := f.Answers.Answer(f.ctx, f.actor, b.ID, object, b.Body)
	require.NoError(f, err)
	f.requireSameBundle(b.Bundle, stored)
	return b
}

// failContent records that a domain failed to produce the content of a bundle, and returns the bundle
// with the failure.
func (f *fixture) failContent(b PeekedBundle, reason string) PeekedBundle {
	f.Helper()
	b.ContentFailure = domain.ContentFailure{Failures: b.ContentFailure.Failures + 1, Reason: reason, Text: "because of " + reason}
	stored, err := f.Answers.Fail(f.ctx, f.actor, b.ID, domain.ContentFailure{Failures: 99, Reason: reason, Text: b.ContentFailure.Text})
	require.NoError(f, err)
	f.requireSameBundle(b.Bundle, stored)
	return b
}

// wantEverywhere requires that every call that returns the bundle returns b.
func (f *fixture) wantEverywhere(b PeekedBundle) {
	f.Helper()
	next := f.readNext()
	f.requireSameBundle(b.Bundle, *next.Open)
	require.Equal(f, b.Events, f.readRange(next.Run))
	found, run, err := f.Bundles.Find(f.ctx, f.actor, b.ID)
	require.NoError(f, err)
	f.requireSameBundle(b.Bundle, found)
	require.Equal(f, b.Events, f.readRange(run))
	queues, err := f.Events.Queues(f.ctx, f.actor)
	require.NoError(f, err)
	in, err := f.Admin.Inspect(f.ctx, f.actor)
	require.NoError(f, err)
	for i, q := range queues {
		if q.Group == b.Group {
			f.requireSameBundle(b.Bundle, *q.Open)
			f.requireSameBundle(b.Bundle, *in.Groups[i].Open)
		}
	}
}

// wantUnanswered requires that a bundle cannot be acknowledged yet.
func (f *fixture) wantUnanswered(b PeekedBundle) {
	f.Helper()
	_, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
	require.ErrorIs(f, err, repository.ErrUnanswered)
	f.wantRefusal(domain.Conflict, err)
	f.wantEverywhere(b)
}

// requireNotOpen requires that Answer and Fail return an error of kind for the bundle id, which is not
// open.
func (f *fixture) requireNotOpen(kind domain.Kind, id domain.BundleID) {
	f.Helper()
	_, err := f.Answers.Answer(f.ctx, f.actor, id, "late", someBody)
	f.wantRefusal(kind, err)
	_, err = f.Answers.Fail(f.ctx, f.actor, id, domain.ContentFailure{Reason: "late"})
	f.wantRefusal(kind, err)
}

var someBody = domain.Body{Length: 1<<53 - 1, Digest: domain.Digest{0, 1, 2, 13: 0xfd, 14: 0xfe, 15: 0xff}}

var answerRules = []contractRule{
	{name: "a bundle on request is returned as it was added", test: func(f *fixture) {
		f.saveNew(2)
		next := f.readNext()
		b, events, err := MakeBundle(f.ctx, next.Run)
		require.NoError(f, err)
		b.Content, b.List, b.Format, b.Version = domain.Request, "a/b-1_c.D", domain.XML, "2.17-beta"
		b, err = f.Bundles.Add(f.ctx, b, next.Run)
		require.NoError(f, err)
		require.True(f, b.IsUnanswered())
		require.Equal(f, "a/b-1_c.D", b.List)
		f.wantEverywhere(PeekedBundle{Bundle: b, Events: events})
	}},

	{name: "an answer is returned by every later call, and the bundle can be dequeued", test: func(f *fixture) {
		events := f.saveNew(3)
		b := f.openOnRequest()
		f.wantSame(events, b.Events)
		f.wantUnanswered(b)
		b = f.answerBundle(b, "answers/of/a-domain")
		f.wantEverywhere(b)
		f.acknowledge(b)
		f.wantNothing()
	}},

	{name: "the first answer stays, whatever is answered later", test: func(f *fixture) {
		f.saveNew(1)
		b := f.answerBundle(f.openOnRequest(), "first")
		for _, object := range []string{"second", "first", "third"} {
			stored, err := f.Answers.Answer(f.ctx, f.actor, b.ID, object, domain.Body{Length: 3})
			require.NoError(f, err)
			f.requireSameBundle(b.Bundle, stored)
		}
		stored, err := f.Answers.Fail(f.ctx, f.actor, b.ID, domain.ContentFailure{Reason: "late"})
		require.NoError(f, err)
		f.requireSameBundle(b.Bundle, stored)
		f.wantEverywhere(b)
		f.acknowledge(b)
	}},

	{name: "consecutive failures are counted, and an answer resets the count", test: func(f *fixture) {
		f.saveNew(1)
		b := f.openOnRequest()
		for _, reason := range []string{"no-answer", "no-answer", "", "dataset-not-found", "internal"} {
			require.False(f, b.ContentFailure.NeedsOperator())
			b = f.failContent(b, reason)
			f.wantUnanswered(b)
		}
		require.True(f, b.ContentFailure.NeedsOperator())
		b = f.failContent(b, `"quoted", \ and 'æøå' <&> `+"\u2028\x01")
		f.wantUnanswered(b)
		f.acknowledge(f.answerBundle(b, "after-all"))
	}},

	{name: "an answer and a failure change nothing else", capacity: 2, test: func(f *fixture) {
		events := f.saveNew(7)
		b := f.openOnRequest()
		f.saveNew(3)
		f.saveNew(2, WithOrigin(domain.Charges))
		b = f.failContent(b, "busy")
		b = f.answerBundle(b, "made")
		f.wantSame(events, b.Events)
		f.wantEverywhere(b)
		closed, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
		require.NoError(f, err)
		require.EqualValues(f, 5, closed.Remaining.Events)
		require.Len(f, f.drain(), 2)
	}},

	{name: "unknown, foreign and closed bundles are NotFound for an answer and a failure, with the same error", test: func(f *fixture) {
		f.saveNew(1)
		closed := f.answerBundle(f.openOnRequest(), "made")
		f.acknowledge(closed)
		other := f.withActor(NewActor())
		other.saveNew(1)
		foreign := other.openOnRequest()
		for name, ask := range map[string]func(domain.BundleID) error{
			"Answer": func(id domain.BundleID) error {
				_, err := f.Answers.Answer(f.ctx, f.actor, id, "late", someBody)
				return err
			},
			"Fail": func(id domain.BundleID) error {
				_, err := f.Answers.Fail(f.ctx, f.actor, id, domain.ContentFailure{Reason: "late"})
				return err
			},
		} {
			texts := make(map[string]bool)
			for _, id := range []domain.BundleID{NewBundleID(), foreign.ID, closed.ID} {
				err := ask(id)
				f.wantRefusal(domain.NotFound, err)
				texts[strings.ReplaceAll(err.Error(), id.String(), "ID")] = true
			}
			require.Len(f, texts, 1, "error texts of %s but for the id: %v", name, texts)
		}
		other.wantEverywhere(foreign)
	}},

	{name: "W10 a late answer does not reopen a closed bundle", test: func(f *fixture) {
		f.saveNew(1)
		dequeued := f.answerBundle(f.openOnRequest(), "made")
		f.acknowledge(dequeued)
		f.saveNew(1)
		skipped := f.openOnRequest()
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, skipped.ID, because))
		events := f.saveNew(1)
		released := f.openOnRequest()
		require.NoError(f, f.Admin.Release(f.ctx, f.actor, released.ID, because))
		for _, b := range []PeekedBundle{dequeued, skipped, released} {
			f.requireNotOpen(domain.NotFound, b.ID)
			f.requireClosed(b.ID)
		}
		f.wantDequeue(events...)
		f.wantNothing()
	}},

	{name: "a bundle in another content mode accepts no answer", test: func(f *fixture) {
		for _, mode := range []domain.ContentMode{domain.Manifest, domain.Inline} {
			f.saveNew(1)
			b, err := Peek(f.ctx, f.Stores, f.actor, AllGroups, domain.BundleID{}, func(b *domain.Bundle) { b.Content = mode })
			require.NoError(f, err)
			f.requireNotOpen(domain.Invalid, b.ID)
			f.wantEverywhere(b)
			f.acknowledge(b)
			f.requireNotOpen(domain.NotFound, b.ID)
		}
	}},

	{name: "an answer that names no object is Invalid", test: func(f *fixture) {
		f.saveNew(1)
		b := f.openOnRequest()
		for _, object := range []string{"", "/", "a//b", "../a", "a b", strings.Repeat("a", 513)} {
			_, err := f.Answers.Answer(f.ctx, f.actor, b.ID, object, someBody)
			f.wantRefusal(domain.Invalid, err)
		}
		f.wantUnanswered(b)
		f.acknowledge(f.answerBundle(b, strings.Repeat("a", 512)))
	}},

	{name: "a frozen queue accepts answers and failures", test: func(f *fixture) {
		f.saveNew(1)
		b := f.openOnRequest()
		require.NoError(f, f.Admin.Freeze(f.ctx, f.actor, because))
		b = f.answerBundle(f.failContent(b, "busy"), "made")
		_, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
		require.ErrorIs(f, err, repository.ErrFrozen)
		require.NoError(f, f.Admin.Thaw(f.ctx, f.actor, because))
		f.acknowledge(b)
	}},

	{name: "an operator can skip and release answered and unanswered bundles", test: func(f *fixture) {
		for _, isAnswered := range []bool{false, true} {
			events := f.saveNew(2)
			b := f.failContent(f.openOnRequest(), "no-answer")
			if isAnswered {
				b = f.answerBundle(b, "made")
			}
			require.NoError(f, f.Admin.Release(f.ctx, f.actor, b.ID, because))
			f.requireClosed(b.ID)
			again := f.openOnRequest()
			f.wantSame(events, again.Events)
			require.NotEqual(f, b.ID, again.ID)
			require.Zero(f, again.ContentFailure)
			if isAnswered {
				again = f.answerBundle(again, "made-again")
			}
			require.NoError(f, f.Admin.Skip(f.ctx, f.actor, again.ID, because))
			f.requireClosed(again.ID)
			f.wantNothing()
		}
	}},

	{name: "a Replay opens a bundle again with its object", test: func(f *fixture) {
		f.saveNew(2)
		b := f.answerBundle(f.openOnRequest(), "made")
		f.acknowledge(b)
		for range 2 {
			again, err := f.Admin.Replay(f.ctx, f.actor, b.Group, because)
			require.NoError(f, err)
			f.requireSameBundle(b.Bundle, again)
			f.wantEverywhere(b)
			f.acknowledge(b)
		}
	}},

	{name: "a Replay of a bundle that was skipped without an answer waits for it again", test: func(f *fixture) {
		f.saveNew(2)
		b := f.failContent(f.openOnRequest(), "no-answer")
		require.NoError(f, f.Admin.Skip(f.ctx, f.actor, b.ID, because))
		again, err := f.Admin.Replay(f.ctx, f.actor, b.Group, because)
		require.NoError(f, err)
		f.requireSameBundle(b.Bundle, again)
		f.wantUnanswered(b)
		f.acknowledge(f.answerBundle(f.failContent(b, "no-answer"), "made"))
	}},

	{name: "of concurrent answers one is the first, and all calls return it", test: func(f *fixture) {
		for range 5 {
			f.saveNew(1)
			b := f.openOnRequest()
			const domains = 6
			var objects [domains]string
			f.runTogether(domains, func(i int) error {
				stored, err := f.Answers.Answer(f.ctx, f.actor, b.ID, "made-by-"+string(rune('a'+i)), domain.Body{Length: int64(i)})
				objects[i] = stored.Object
				return err
			})
			for _, object := range objects {
				require.Equal(f, objects[0], object)
			}
			require.Equal(f, objects[0], f.readNext().Open.Object)
			require.Equal(f, "made-by-"+string(rune('a'+int(f.readNext().Open.Body.Length))), objects[0])
			f.acknowledge(PeekedBundle{Bundle: *f.readNext().Open})
		}
	}},

	{name: "concurrent failures are all counted, until the answer", test: func(f *fixture) {
		f.saveNew(1)
		b := f.openOnRequest()
		const calls = 6
		fails := func(int) error {
			_, err := f.Answers.Fail(f.ctx, f.actor, b.ID, domain.ContentFailure{Reason: "busy"})
			return err
		}
		f.runTogether(calls, fails)
		require.Equal(f, calls, f.readNext().Open.ContentFailure.Failures)
		f.runTogether(calls, func(i int) error {
			if i > 0 {
				return fails(i)
			}
			_, err := f.Answers.Answer(f.ctx, f.actor, b.ID, "made", someBody)
			return err
		})
		require.Zero(f, f.readNext().Open.ContentFailure)
		require.Equal(f, "made", f.readNext().Open.Object)
	}},

	{name: "a Dequeue concurrent with answers closes the bundle or fails with ErrUnanswered", test: func(f *fixture) {
		for range 5 {
			f.saveNew(1)
			b := f.openOnRequest()
			var closed atomic.Bool
			f.runTogether(4, func(i int) error {
				switch i {
				case 0:
					_, err := f.Bundles.Acknowledge(f.ctx, f.actor, b.ID)
					if domain.KindOf(err) == domain.Conflict {
						return nil
					}
					closed.Store(err == nil)
					return err
				case 1:
					_, err := f.Answers.Fail(f.ctx, f.actor, b.ID, domain.ContentFailure{Reason: "busy"})
					if domain.KindOf(err) == domain.NotFound {
						return nil
					}
					return err
				}
				_, err := f.Answers.Answer(f.ctx, f.actor, b.ID, "made", someBody)
				if domain.KindOf(err) == domain.NotFound {
					return nil
				}
				return err
			})
			if !closed.Load() {
				require.Equal(f, "made", f.readNext().Open.Object)
				f.acknowledge(PeekedBundle{Bundle: *f.readNext().Open})
			}
			f.requireClosed(b.ID)
			f.wantNothing()
		}
	}},

	{name: "with an ended context nothing is answered", test: func(f *fixture) {
		f.saveNew(1)
		b := f.openOnRequest()
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		_, err := f.Answers.Answer(ended, f.actor, b.ID, "made", someBody)
		require.ErrorIs(f, err, context.Canceled)
		_, err = f.Answers.Fail(ended, f.actor, b.ID, domain.ContentFailure{Reason: "busy"})
		require.ErrorIs(f, err, context.Canceled)
		f.wantUnanswered(b)
	}},
}
