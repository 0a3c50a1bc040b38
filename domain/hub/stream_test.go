package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

// requireNoBody checks that writing the body fails with the error failure and the given kind, and that the written
// bytes are incomplete.
func (w *world) requireNoBody(p *hub.PeekedBundle, failure error, kind domain.Kind) {
	w.Helper()
	var b bytes.Buffer
	err := writeBody(w.ctx, p, &b)
	require.ErrorIs(w, err, failure)
	require.Equal(w, kind.String(), domain.KindOf(err).String())
	require.False(w, json.Valid(b.Bytes()))
}

// addAdjacent adds n events, whose payloads have the given size and are adjacent in one object.
func (s *shelf) addAdjacent(n, size int) {
	s.Helper()
	payload := `"` + strings.Repeat("x", size-2) + `"`
	s.putObject("filled", strings.Repeat(payload, n))
	for i := range n {
		s.addEvent(repository.Section{Object: "filled", Offset: int64(i * size), Length: int64(size), Sum: repository.SumOf([]byte(payload))})
	}
}

// countAllocated returns how many bytes do allocates.
func countAllocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestBody_StreamsPayloads(t *testing.T) {
	const n, size = 2_000, 10_000
	s := newShelf(t)
	s.addAdjacent(n, size)
	peeked := s.newPeeked()
	var written counter
	bytes := countAllocated(func() { require.NoError(t, writeBody(s.ctx, peeked, &written)) })
	require.Equal(t, counter(n*size+2+2*n+1), written)
	require.Less(t, bytes, uint64(1<<20), "for 20 MB of payloads")
	require.Equal(t, 1, s.most, "readers open at the same time")
	require.LessOrEqual(t, s.opened, 4, "payloads side by side are read together")
	require.Equal(t, s.opened, s.closed)
}

// A counter is a writer that counts bytes.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func TestManifest_AllocatesNothingPerEvent(t *testing.T) {
	s := newShelf(t)
	s.content = domain.Manifest
	for range 10_000 {
		s.addEvent(repository.Section{})
	}
	peeked := s.newPeeked()
	allocations := testing.AllocsPerRun(1, func() { require.NoError(t, writeBody(s.ctx, peeked, io.Discard)) })
	require.Less(t, allocations, 100.0, "for 10,000 events")
}

func TestBody_ReturnsErrorsOfTheContentStore(t *testing.T) {
	failure := errors.New("disk on fire")
	fails := func(kind domain.Kind) error { return domain.Errorf(kind, "content: %w", failure) }
	data := func(s *shelf, at repository.Section) io.Reader { return must(s.store.Open(s.ctx, at)) }
	for _, kind := range kinds {
		for name, open := range map[string]func(s *shelf, at repository.Section) (io.ReadCloser, error){
			"when opened": func(*shelf, repository.Section) (io.ReadCloser, error) { return nil, fails(kind) },
			"when read": func(*shelf, repository.Section) (io.ReadCloser, error) {
				return io.NopCloser(iotest.ErrReader(fails(kind))), nil
			},
			"in the middle": func(s *shelf, at repository.Section) (io.ReadCloser, error) {
				half := io.LimitReader(data(s, at), at.Length/2)
				return io.NopCloser(io.MultiReader(half, iotest.ErrReader(fails(kind)))), nil
			},
			"when closed": func(s *shelf, at repository.Section) (io.ReadCloser, error) {
				return failingCloser{data(s, at), fails(kind)}, nil
			},
		} {
			t.Run(kind.String()+" "+name, func(t *testing.T) {
				s := newShelf(t)
				s.addAdjacent(600, 300)
				s.open = func(at repository.Section) (io.ReadCloser, error) { return open(s, at) }
				want := kind
				if kind == domain.NotFound && name == "when opened" {
					want = domain.Damaged // a missing payload is damage, because its bundle exists
				}
				s.requireNoBody(s.newPeeked(), failure, want)
				require.Equal(t, s.opened, s.closed)
			})
		}
	}
}

type failingCloser struct {
	io.Reader
	err error
}

func (c failingCloser) Close() error { return c.err }

func TestBody_NamesTheEventsOfAFailure(t *testing.T) {
	s := newShelf(t)
	s.addAdjacent(3, 10)
	failure := domain.Errorf(domain.Unavailable, "out of reach")
	s.open = func(repository.Section) (io.ReadCloser, error) { return nil, failure }
	require.EqualError(t, writeBody(s.ctx, s.newPeeked(), io.Discard),
		"open the payloads of events "+s.events[0].ID.String()+" to "+s.events[2].ID.String()+": out of reach")

	s.open = func(at repository.Section) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(`"xxxxxxxx""x`), iotest.ErrReader(failure))), nil
	}
	require.EqualError(t, writeBody(s.ctx, s.newPeeked(), io.Discard), "payload of event "+s.events[1].ID.String()+": out of reach")
}

func TestBody_IsDamagedIfAPayloadIsTooShort(t *testing.T) {
	for _, left := range []string{"", `"xxxxxxxx"`, `"xxxxxxxx""x`} {
		s := newShelf(t)
		s.addAdjacent(3, 10)
		s.events = append(s.events[:1], s.events[2]) // remove the event between two payloads, so that they are not adjacent
		s.open = func(repository.Section) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(left)), nil }
		s.requireNoBody(s.newPeeked(), io.ErrUnexpectedEOF, domain.Damaged)
		require.Equal(t, 1, s.closed)
	}
}

func TestBody_IsDamagedIfEventsAreMissing(t *testing.T) {
	for name, given := range map[string]func(*shelf){
		"none":     func(s *shelf) { s.events = nil },
		"one less": func(s *shelf) { s.events = s.events[1:] },
		"one more": func(s *shelf) { s.addEvent(repository.Section{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			s.addAdjacent(600, 10)
			bundle := s.newPeeked().Bundle
			given(s)
			s.replaceCalls(replacedStore{next: func(context.Context, domain.ActorID, []domain.Group) (repository.Next, error) {
				return repository.Next{Open: &bundle, Run: cannedRun{bundle, s.events}}, nil
			}}, hub.Options{})
			var b bytes.Buffer
			err := writeBody(s.ctx, s.peekBundle(), &b)
			require.Equal(t, domain.Damaged, domain.KindOf(err))
			require.ErrorContains(t, err, "it has 600 events, but the store returned ")
			require.False(t, json.Valid(b.Bytes()))
		})
	}
}

func TestBody_ClosesItsObjectsIfAWriteFails(t *testing.T) {
	for _, after := range []int{0, 1, 64 << 10, 300_000} {
		s := newShelf(t)
		s.addAdjacent(2_000, 300)
		peeked := s.newPeeked()
		gone := errors.New("hung up")
		require.ErrorIs(t, writeBody(s.ctx, peeked, &failingWriter{after, gone}), gone)
		require.Equal(t, s.opened, s.closed)
	}
	s := newShelf(t)
	s.addEvent(repository.Section{})
	gone := errors.New("hung up")
	require.ErrorIs(t, writeBody(s.ctx, s.newPeeked(), &failingWriter{5, gone}), gone, "even if all of it was buffered")
}

// A failingWriter accepts some bytes and then fails.
type failingWriter struct {
	left int
	err  error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	n := min(w.left, len(p))
	w.left -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

func TestBody_StopsIfItsContextEnds(t *testing.T) {
	s := newShelf(t)
	s.addAdjacent(2, 10)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	require.ErrorIs(t, writeBody(ctx, s.newPeeked(), io.Discard), context.Canceled)
}

func TestBody_IsDamagedIfAPayloadIsMissingOrChanged(t *testing.T) {
	s := newShelf(t)
	s.putObject("there", `"one"`)
	s.addEvent(repository.Section{Object: "there", Length: 5, Sum: repository.SumOf([]byte(`"two"`))})
	require.Equal(t, domain.Damaged, domain.KindOf(writeBody(t.Context(), s.newPeeked(), io.Discard)))

	s = newShelf(t)
	s.addEvent(repository.Section{Object: "gone", Length: 5})
	err := writeBody(t.Context(), s.newPeeked(), io.Discard)
	require.Equal(t, domain.Damaged, domain.KindOf(err), "a 404 would say that there is no bundle: %v", err)
}
