package consumerhistory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheck_FindsImpossibleHistories(t *testing.T) {
	ab := []string{"a", "b"}
	for _, tc := range []struct {
		name string
		note func(r *Recorder)
		want Verdict
	}{
		{"no bundle", func(r *Recorder) { r.Call(1, 2, "a", true) }, Skipped},
		{"a bundle that is fetched again, and dequeued", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", ab)
			r.Peek(2, 3, 4, "x", ab)
			r.Dequeue(1, 5, 6, "x", Done)
			r.Dequeue(2, 7, 8, "x", Done)
			r.Peek(1, 9, 10, "", nil)
		}, Legal},
		{"a bundle after a call that failed", func(r *Recorder) {
			r.Call(1, 2, "a", false)
			r.Peek(1, 3, 4, "x", ab)
			r.Dequeue(1, 5, 6, "x", Done)
		}, Legal},
		{"a bundle with a message that a call delivered", func(r *Recorder) {
			r.Call(1, 2, "a", true)
			r.Peek(1, 3, 4, "x", ab)
			r.Dequeue(1, 5, 6, "x", Done)
		}, Illegal},
		{"a message by both doors at the same time", func(r *Recorder) {
			r.Call(1, 9, "a", true)
			r.Peek(1, 3, 4, "x", ab)
			r.Dequeue(1, 5, 6, "x", Done)
		}, Illegal},
		{"a call with a message of an open bundle", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", ab)
			r.Call(3, 4, "a", false)
			r.Dequeue(1, 5, 6, "x", Done)
		}, Illegal},
		{"a call with a message that was dequeued", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", ab)
			r.Dequeue(1, 3, 4, "x", Done)
			r.Call(5, 6, "b", false)
		}, Illegal},
		{"a bundle that changes", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", ab)
			r.Peek(2, 3, 4, "x", []string{"a"})
			r.Dequeue(1, 5, 6, "x", Done)
		}, Illegal},
		{"two bundles that are open", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", []string{"a"})
			r.Peek(2, 3, 4, "y", []string{"b"})
			r.Dequeue(1, 5, 6, "x", Done)
			r.Dequeue(1, 7, 8, "y", Done)
		}, Illegal},
		{"a message in two bundles", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", ab)
			r.Dequeue(1, 3, 4, "x", Done)
			r.Peek(1, 5, 6, "y", []string{"b", "c"})
			r.Dequeue(1, 7, 8, "y", Done)
		}, Illegal},
		{"a bundle that comes again after its Dequeue", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", ab)
			r.Dequeue(1, 3, 4, "x", Done)
			r.Peek(2, 5, 6, "x", ab)
		}, Illegal},
		{"the next bundle after a Dequeue whose answer was lost", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", []string{"a"})
			r.Dequeue(1, 3, 4, "x", Unknown)
			r.Peek(1, 5, 6, "y", []string{"b"})
			r.Dequeue(1, 7, 8, "y", Done)
		}, Legal},
		{"an open bundle that is not found", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", ab)
			r.Dequeue(1, 3, 4, "x", NotFound)
			r.Dequeue(1, 5, 6, "x", Done)
		}, Illegal},
		{"an open bundle that a Peek does not find", func(r *Recorder) {
			r.Peek(1, 1, 2, "x", ab)
			r.Peek(1, 3, 4, "", nil)
			r.Dequeue(1, 5, 6, "x", Done)
		}, Illegal},
		{"a bundle that is not dequeued in the end", func(r *Recorder) { r.Peek(1, 1, 2, "x", ab) }, Illegal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r Recorder
			tc.note(&r)
			require.Equal(t, tc.want, r.Check(100, Options{}), r.String())
		})
	}
}
