package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// openBody opens the body of a bundle, and closes it at the end of the test.
func (w *world) openBody(p *hub.PeekedBundle) hub.Body {
	w.Helper()
	body, err := p.Open(w.ctx)
	require.NoError(w, err)
	w.Cleanup(func() { require.NoError(w, body.Close()) })
	return body
}

// readFrom reads n bytes of a body at an offset, or fewer if the body ends.
func (w *world) readFrom(b hub.Body, at int64, n int64) string {
	w.Helper()
	got, err := b.Seek(at, io.SeekStart)
	require.NoError(w, err)
	require.Equal(w, at, got)
	text, err := io.ReadAll(io.LimitReader(b, n))
	require.NoError(w, err)
	return string(text)
}

// addMixed adds n events to a shelf. Only some have payloads, which are in several objects.
func (s *shelf) addMixed(n int) {
	s.Helper()
	objects := make([]bytes.Buffer, 3)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		o := i / 97 % (len(objects) + 1)
		if o == len(objects) {
			s.addEvent(repository.Section{})
			continue
		}
		payload := fmt.Sprintf(`{"n":%d,"s":%q}`, i, strings.Repeat("x", rng.IntN(500)))
		s.addEvent(repository.Section{Object: fmt.Sprint("o", o), Offset: int64(objects[o].Len()), Length: int64(len(payload)), Sum: repository.SumOf([]byte(payload))})
		objects[o].WriteString(payload)
	}
	for i := range objects {
		s.putObject(fmt.Sprint("o", i), objects[i].String())
	}
}

func TestBody_CanBeReadFromAnyOffset(t *testing.T) {
	for _, mode := range []domain.ContentMode{domain.Manifest, domain.Inline} {
		t.Run(string(mode), func(t *testing.T) {
			s := newShelf(t)
			s.content = mode
			s.addMixed(1_000)
			peeked := s.newPeeked()
			whole := s.body(peeked)
			body := s.openBody(peeked)
			size, err := body.Seek(0, io.SeekEnd)
			require.NoError(t, err)
			require.Equal(t, int64(len(whole)), size)
			require.Equal(t, peeked.Body.Length, size)
			rng := rand.New(rand.NewPCG(5, 6))
			for range 300 {
				at, n := rng.Int64N(size+1), rng.Int64N(5_000)
				want := whole[at:min(at+n, size)]
				if s.readFrom(body, at, n) != want {
					t.Fatalf("other bytes from %d on", at)
				}
			}
			require.Equal(t, "", s.readFrom(body, size, 10))
			require.Equal(t, "", s.readFrom(body, size+1000, 10))
			require.Equal(t, whole[size-10:], s.readFrom(body, size-10, 100))
			require.LessOrEqual(t, s.most, 128)
		})
	}
}

func TestBody_IsAReadSeeker(t *testing.T) {
	s := newShelf(t)
	s.addMixed(200)
	peeked := s.newPeeked()
	whole := s.body(peeked)
	require.NoError(t, iotest.TestReader(s.openBody(peeked), []byte(whole)))
	_, err := s.openBody(peeked).Seek(-1, io.SeekStart)
	require.ErrorContains(t, err, "before the beginning")
}

func TestBody_CanBeginAtEveryByte(t *testing.T) {
	for _, mode := range []domain.ContentMode{domain.Manifest, domain.Inline} {
		w := newWorld(t, hub.Options{Content: map[domain.Origin]domain.ContentMode{domain.TimeSeries: mode}})
		w.sendNew(3, rt.WithPayload(`{"a":1}`))
		w.sendNew(2, rt.WithPayload(`"b"`))
		peeked := w.peekBundle()
		whole := w.body(peeked)
		body := w.openBody(peeked)
		for at := range whole {
			require.Equal(t, whole[at:], w.readFrom(body, int64(at), 1<<20))
			require.Equal(t, whole[:at], w.readFrom(body, 0, int64(at)))
		}
	}
}

func TestBody_OpensNoPayloadsBeforeItsOffset(t *testing.T) {
	s := newShelf(t)
	s.addMixed(1_000)
	peeked := s.newPeeked()
	whole := s.body(peeked)
	s.opened, s.closed = 0, 0
	body := s.openBody(peeked)
	require.Zero(t, s.opened)
	require.Equal(t, whole[len(whole)-3:], s.readFrom(body, int64(len(whole)-3), 10))
	require.Zero(t, s.opened, "the last line has no payload behind it")
	body.LimitReadAhead(int64(len(whole)/2) + 10)
	s.readFrom(body, int64(len(whole)/2), 10)
	require.LessOrEqual(t, s.opened, 1)
	require.NoError(t, body.Close())
	require.Equal(t, s.opened, s.closed)
	_, err := body.Read(make([]byte, 1))
	require.ErrorContains(t, err, "closed")
}

func TestBodyDigest_IsComputedOnceWithoutPayloads(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(5, rt.WithPayload(`{"a":1}`))
	opened := 0
	w.replaceCalls(replacedStore{open: func(ctx context.Context, s repository.Section) (io.ReadCloser, error) {
		opened++
		return w.store.Open(ctx, s)
	}}, hub.Options{})
	first := w.peekBundle()
	require.NotZero(t, first.Body)
	require.Zero(t, opened)
	require.Len(t, w.body(first), int(first.Body.Length))
	again := w.peekBundle()
	require.Equal(t, first.Body, again.Body)
	found, err := w.hub.Bundle(w.ctx, hub.PeekRequest{Actor: w.actor, BundleID: first.ID})
	require.NoError(t, err)
	require.Equal(t, first.Bundle, found.Bundle)
	require.Equal(t, w.body(first), w.body(found))
}

func TestBodyDigest_IsComputedForABundleOfAnOlderVersion(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(3, rt.WithPayload(`{"a":1}`))
	var measured domain.Body
	w.replaceCalls(replacedStore{add: func(ctx context.Context, b domain.Bundle, run repository.Run) (domain.Bundle, error) {
		measured, b.Body = b.Body, domain.Body{}
		return w.store.Add(ctx, b, run)
	}}, hub.Options{})
	w.peekBundle()
	old := w.peekBundle()
	require.Zero(t, old.Body)
	body := w.openBody(old)
	require.Equal(t, measured, old.Body)
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Len(t, text, int(measured.Length))
}

func TestBodyDigest_DiffersBetweenBundles(t *testing.T) {
	seen := map[domain.Digest]string{}
	for _, mode := range []domain.ContentMode{domain.Manifest, domain.Inline} {
		for _, payload := range []string{`{"a":1}`, `{"a":2}`, `{"a":10}`} {
			w := newWorld(t, hub.Options{Content: map[domain.Origin]domain.ContentMode{domain.TimeSeries: mode}})
			w.sendNew(2, rt.WithPayload(payload))
			for range 2 { // the second bundle contains the same payloads as the first
				peeked := w.peekBundle()
				require.NotContains(t, seen, peeked.Body.Digest)
				seen[peeked.Body.Digest] = payload
				w.dequeueBundle(peeked)
				w.sendNew(2, rt.WithPayload(payload))
			}
		}
	}
}

func TestBody_IsDamagedIfItDiffersFromItsDigest(t *testing.T) {
	for name, change := range map[string]int64{"longer": -1, "shorter": 1, "far longer": -100, "far shorter": 100} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, hub.Options{})
			w.sendNew(3, rt.WithPayload(`{"a":1}`))
			w.replaceCalls(replacedStore{add: func(ctx context.Context, b domain.Bundle, run repository.Run) (domain.Bundle, error) {
				b.Body.Length += change
				return w.store.Add(ctx, b, run)
			}}, hub.Options{})
			var b bytes.Buffer
			err := writeBody(w.ctx, w.peekBundle(), &b)
			require.Equal(t, domain.Damaged, domain.KindOf(err))
			require.ErrorContains(t, err, "its body no longer has the")
			require.NotContains(t, b.String(), "\n]", "nothing that looks whole")
		})
	}
}

func TestBody_RepeatsItsFirstError(t *testing.T) {
	s := newShelf(t)
	s.addAdjacent(10, 100_000)
	failure := errors.New("disk gone")
	s.open = func(at repository.Section) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(io.LimitReader(must(s.store.Open(s.ctx, at)), 250_000), iotest.ErrReader(failure))), nil
	}
	body := s.openBody(s.newPeeked())
	require.NoError(t, body.Err())
	n, err := io.Copy(io.Discard, body)
	require.ErrorIs(t, err, failure)
	require.Less(t, n, int64(250_100))
	require.ErrorIs(t, body.Err(), failure)
	_, err = body.Seek(0, io.SeekStart)
	require.NoError(t, err)
	_, err = body.Read(make([]byte, 10))
	require.ErrorIs(t, err, failure)
}

func TestPeek_WithOpenOnlyOpensNoBundle(t *testing.T) {
	w := newWorld(t, hub.Options{})
	w.sendNew(1)
	req := w.newRequest()
	req.OpenOnly = true
	_, err := w.hub.Peek(w.ctx, req)
	require.ErrorIs(t, err, domain.ErrNoData)
	open := w.peekBundle()
	again, err := w.hub.Peek(w.ctx, req)
	require.NoError(t, err)
	require.Equal(t, open.Bundle, again.Bundle)
	w.dequeueBundle(open)
	_, err = w.hub.Bundle(w.ctx, hub.PeekRequest{Actor: w.actor, BundleID: open.ID})
	require.Equal(t, domain.NotFound, domain.KindOf(err))
}

func TestSeek_SkipsShortGapsByReading(t *testing.T) {
	s := newShelf(t)
	s.addAdjacent(100, 10_000) // the payloads of these events are adjacent in one object
	peeked := s.newPeeked()
	whole := s.body(peeked)
	read := func(step int) (opened int) {
		s.opened, s.closed = 0, 0
		body, err := peeked.Open(s.ctx)
		require.NoError(t, err)
		for at := 0; at+10 <= len(whole); at += step {
			require.Equal(t, whole[at:at+10], s.readFrom(body, int64(at), 10))
		}
		require.NoError(t, body.Close())
		require.Equal(t, s.opened, s.closed)
		return s.opened
	}
	require.Equal(t, 1, read(50_000))
	require.Equal(t, 5, read(250_000), "to read that far would cost more")
}
