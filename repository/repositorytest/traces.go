package repositorytest

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

// spanOf returns the n-th span of a trace.
func spanOf(trace byte, n int) domain.TraceContext {
	c := domain.TraceContext{TraceID: domain.TraceID{trace, 15: 1}, Sampled: true}
	binary.BigEndian.PutUint64(c.SpanID[:], uint64(n+1)) //nolint:gosec // a small number
	return c
}

// saveWithSpan saves n new events on behalf of a span.
func (f *fixture) saveWithSpan(c domain.TraceContext, n int, changes ...Change) {
	f.Helper()
	_, err := f.Events.Save(domain.WithTraceContext(f.ctx, c), f.actor, f.events(n, changes...))
	require.NoError(f, err)
}

// openTraced opens a bundle of the first count waiting events, and returns up to limit of the spans
// that saved these events.
func (f *fixture) openTraced(count, limit int, by domain.TraceContext) (domain.Bundle, []domain.TraceContext) {
	f.Helper()
	next := f.readNext()
	bundle, _, err := MakeBundle(f.ctx, next.Run)
	require.NoError(f, err)
	if count < bundle.Count {
		n := 0
		for e, err := range next.Run.Events(f.ctx) {
			require.NoError(f, err)
			if n++; n == count {
				bundle.Last = e.Sequence
				break
			}
		}
		bundle.Count, bundle.Weight = count, domain.Weight(count)
	}
	bundle.Peeked = by
	bundle, err = f.Bundles.Add(f.ctx, bundle, next.Run)
	require.NoError(f, err)
	return bundle, next.Run.Saves(bundle.Count, limit)
}

var traceRules = []contractRule{
	{name: "a bundle names the spans that have saved its events, the oldest first", capacity: 3, test: func(f *fixture) {
		f.saveWithSpan(spanOf(1, 1), 2)
		f.saveWithSpan(spanOf(1, 2), 2)
		f.saveWithSpan(domain.TraceContext{}, 1)
		f.saveWithSpan(spanOf(2, 3), 1)
		f.saveWithSpan(spanOf(2, 3), 1)
		f.saveWithSpan(spanOf(1, 4), 4, WithOrigin(domain.Charges))
		_, saves := f.openTraced(100, 64, domain.TraceContext{})
		require.Equal(f, []domain.TraceContext{spanOf(1, 1), spanOf(1, 2), spanOf(2, 3)}, saves)
	}},

	{name: "a bundle names no span of events that are not in it", test: func(f *fixture) {
		for n := range 5 {
			f.saveWithSpan(spanOf(1, n), 1)
		}
		bundle, saves := f.openTraced(2, 64, domain.TraceContext{})
		require.Equal(f, []domain.TraceContext{spanOf(1, 0), spanOf(1, 1)}, saves)
		_, err := f.Bundles.Acknowledge(f.ctx, f.actor, bundle.ID)
		require.NoError(f, err)
		_, saves = f.openTraced(100, 2, domain.TraceContext{})
		require.Equal(f, []domain.TraceContext{spanOf(1, 2), spanOf(1, 3)}, saves)
	}},

	{name: "any number of spans remain with their events", test: func(f *fixture) {
		var want []domain.TraceContext
		for n := range 60 {
			f.saveWithSpan(spanOf(byte(n/7), n), 1)
			want = append(want, spanOf(byte(n/7), n))
		}
		f.saveWithSpan(spanOf(99, 0), 300)
		_, saves := f.openTraced(1000, 64, domain.TraceContext{})
		require.Equal(f, append(want, spanOf(99, 0)), saves)
	}},

	{name: "spans that are not sampled are not kept, nor is the state of other systems", test: func(f *fixture) {
		unsampled := spanOf(1, 1)
		unsampled.Sampled = false
		f.saveWithSpan(unsampled, 1)
		stated := spanOf(1, 2)
		stated.State = "a=b"
		f.saveWithSpan(stated, 1)
		bundle, saves := f.openTraced(100, 64, unsampled)
		require.Equal(f, []domain.TraceContext{spanOf(1, 2)}, saves)
		require.Zero(f, bundle.Peeked)
	}},

	{name: "a bundle keeps the Peek that opened it, and so does its notice", test: func(f *fixture) {
		peeked := spanOf(3, 1)
		f.saveNew(1)
		opened := f.openOnRequest()
		require.Zero(f, opened.Peeked)
		f.acknowledge(f.answerBundle(opened, "made"))
		f.saveNew(1)
		next := f.readNext()
		bundle, _, err := MakeBundle(f.ctx, next.Run)
		require.NoError(f, err)
		OnRequest(&bundle)
		bundle.Peeked = peeked
		_, err = f.Bundles.Add(f.ctx, bundle, next.Run)
		require.NoError(f, err)
		require.Equal(f, peeked, f.readNext().Open.Peeked)
		_, err = f.Answers.Answer(f.ctx, f.actor, bundle.ID, ObjectOf(bundle.ID), domain.Body{Length: 1})
		require.NoError(f, err)
		closed, err := f.Bundles.Acknowledge(f.ctx, f.actor, bundle.ID)
		require.NoError(f, err)
		require.Equal(f, peeked, closed.Peeked)
		notices := f.readNotices()
		require.Equal(f, peeked, notices[len(notices)-1].Peeked)
	}},
}
