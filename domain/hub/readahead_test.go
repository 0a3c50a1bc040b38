package hub_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

// addSeparate adds n events, whose payloads have the given size and are in separate objects. It returns the body of the
// bundle.
func (s *shelf) addSeparate(n, size int) string {
	s.Helper()
	payloads := make([]string, n)
	for i := range payloads {
		payloads[i] = fmt.Sprintf(`"%0*d"`, size-2, i)
		name := fmt.Sprintf("scattered/%d", i)
		s.putObject(name, payloads[i])
		s.addEvent(repository.Section{Object: name, Length: int64(size), Sum: repository.SumOf([]byte(payloads[i]))})
	}
	return inlineOf(payloads...)
}

// delayOpens makes opening an object take d.
func (s *shelf) delayOpens(d time.Duration) {
	s.open = func(at repository.Section) (io.ReadCloser, error) {
		<-time.After(d)
		return s.store.Open(s.ctx, at)
	}
}

func TestBody_OpensSeparatePayloadsInParallel(t *testing.T) {
	const opening = 6 * time.Millisecond
	for _, tc := range []struct {
		events, size int
		want         time.Duration
	}{
		{51_200, 100, 2500 * time.Millisecond},
		{8_000, 1000, 400 * time.Millisecond},
		{1_000, 1000, 100 * time.Millisecond},
		{1, 1000, opening},
	} {
		t.Run(fmt.Sprint(tc.events, " of ", tc.size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf(t)
				want := s.addSeparate(tc.events, tc.size)
				s.delayOpens(opening)
				peeked := s.newPeeked()
				began := time.Now()
				got := s.body(peeked)
				require.LessOrEqual(t, time.Since(began), tc.want)
				require.True(t, want == got, "other bytes")
				require.Equal(t, tc.events, s.opened, "each object is opened once")
				require.Equal(t, s.opened, s.closed)
				require.LessOrEqual(t, s.most, 128)
			})
		})
	}
}

func TestBody_ReadsAheadOnlyAsMuchAsMemoryAllows(t *testing.T) {
	for name, allowed := range map[string]int64{"none": 0, "some": 100 << 10, "any": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const size = 4 << 10
				s := newShelf(t)
				want := s.addSeparate(2_000, size)
				peeked := s.newPeeked()
				granted := int64(32 << 10)
				peeked.GrowMemory = func(n int64) bool {
					if granted+n > allowed {
						return false
					}
					granted += n
					return true
				}
				body := s.openBody(peeked)
				got, read := make([]byte, 0, len(want)), make([]byte, size)
				for {
					n, err := body.Read(read)
					got = append(got, read[:n]...)
					if errors.Is(err, io.EOF) {
						break
					}
					require.NoError(t, err)
					synctest.Wait()
					ahead := s.opened - len(got)/(size+2)
					require.LessOrEqual(t, int64(ahead-1), granted/size)
				}
				require.True(t, want == string(got), "other bytes")
				require.LessOrEqual(t, granted, int64(1<<20))
			})
		})
	}
}

func TestLimitReadAhead_OpensNoPayloadsAfterIt(t *testing.T) {
	for _, mode := range []domain.ContentMode{domain.Inline, domain.Manifest} {
		s := newShelf(t)
		s.content = mode
		s.addSeparate(500, 100)
		peeked := s.newPeeked()
		whole := s.body(peeked)
		line := len(whole) / 500
		for _, first := range []int{0, 1, 200, 499} {
			s.opened, s.closed = 0, 0
			body, err := peeked.Open(s.ctx)
			require.NoError(t, err)
			begin, end := strings.Index(whole, fmt.Sprintf(`%d"`, first)), min(len(whole), line*(first+3))
			body.LimitReadAhead(int64(end))
			require.Equal(t, whole[begin:end], s.readFrom(body, int64(begin), int64(end-begin)))
			require.LessOrEqual(t, s.opened, 4)
			require.Equal(t, whole[end:], s.readFrom(body, int64(end), int64(len(whole))), "and the limit ends with it")
			require.NoError(t, body.Close())
			require.Equal(t, s.opened, s.closed)
		}
	}
}

func TestBody_FailsOnlyAtTheFailingPayload(t *testing.T) {
	failure := domain.Errorf(domain.Unavailable, "out of reach")
	for name, fail := range map[string]func() (io.ReadCloser, error){
		"when opened": func() (io.ReadCloser, error) { return nil, failure },
		"when read":   func() (io.ReadCloser, error) { return io.NopCloser(iotest.ErrReader(failure)), nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			whole := s.addSeparate(300, 1000)
			s.open = func(at repository.Section) (io.ReadCloser, error) {
				if at.Object == "scattered/100" {
					return fail()
				}
				return s.store.Open(s.ctx, at)
			}
			var got bytes.Buffer
			_, err := io.CopyBuffer(struct{ io.Writer }{&got}, s.openBody(s.newPeeked()), make([]byte, 100))
			require.ErrorIs(t, err, failure)
			require.ErrorContains(t, err, s.events[100].ID.String())
			require.GreaterOrEqual(t, got.Len(), 100*1000)
			require.True(t, strings.HasPrefix(whole, got.String()))
		})
	}
}

func TestCloseBody_WaitsForTheReadsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.addSeparate(500, 1000)
		peeked := s.newPeeked()
		s.replaceCalls(replacedStore{
			next: func(context.Context, domain.ActorID, []domain.Group) (repository.Next, error) {
				return repository.Next{Open: &peeked.Bundle, Run: cannedRun{peeked.Bundle, s.events}}, nil
			},
			open: func(ctx context.Context, at repository.Section) (io.ReadCloser, error) {
				if at.Object != "scattered/0" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return s.watch(ctx, at)
			},
		}, hub.Options{})
		body, err := s.peekBundle().Open(s.ctx)
		require.NoError(t, err)
		_, err = io.ReadFull(body, make([]byte, 100))
		require.NoError(t, err)
		require.NoError(t, body.Close())
		require.Equal(t, s.opened, s.closed)
	})
}
