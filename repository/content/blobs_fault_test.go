package content_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// A wire is a transport to an account. A test can replace its responses.
type wire struct {
	next  *embedded.Transport
	mu    sync.Mutex
	calls int

	// before and after, if not nil, are called before and after each request. n is the number of the
	// request, beginning with 1. If before returns a response or an error, the request is not sent.
	before func(n int, r *http.Request) (*http.Response, error)
	after  func(n int, r *http.Request, answer *http.Response) (*http.Response, error)
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.calls++
	n := w.calls
	w.mu.Unlock()
	if w.before != nil {
		if answer, err := w.before(n, r); answer != nil || err != nil {
			return answer, err
		}
	}
	answer, err := w.next.Do(r)
	if err == nil && w.after != nil {
		return w.after(n, r, answer)
	}
	return answer, err
}

var errLost = errors.New("the connection was lost")

// openWire returns blobs whose requests use a wire, this wire, and blobs that access the same account
// directly. In a synctest bubble, waits take no real time.
func openWire(t *testing.T) (*content.Blobs, *wire, *content.Blobs) {
	t.Helper()
	account, err := embedded.Open(embedded.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, account.Close()) })
	o := inProcess(account)
	o.Container, o.Create = "exchange", true
	direct, err := content.OpenBlobs(t.Context(), o)
	require.NoError(t, err)
	w := &wire{next: account.Transport()}
	o.Transport, o.Create = w, false
	blobs, err := content.OpenBlobs(t.Context(), o)
	require.NoError(t, err)
	w.calls = 0
	return blobs, w, direct
}

func readObject(t *testing.T, c repository.Content, name string, length int) (string, error) {
	t.Helper()
	r, err := c.Open(t.Context(), repository.Section{Object: name, Length: int64(length)})
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(r)
	return string(data), errors.Join(err, r.Close())
}

// sizes are sizes of objects: Put stores the first two in one request, and the last in blocks.
var sizes = []int{5, 4 << 20, 4<<20 + 5}

// If a request or its response is lost, the object exists after Put, and Put recognizes the object as its
// own.
func TestPut_SurvivesALostRequest(t *testing.T) {
	for _, size := range sizes {
		for _, isResponseLost := range []bool{false, true} {
			for at, done := 1, false; !done; at++ {
				synctest.Test(t, func(t *testing.T) {
					blobs, w, direct := openWire(t)
					lose := func(n int) error {
						if n == at {
							return errLost
						}
						return nil
					}
					if isResponseLost {
						w.after = func(n int, _ *http.Request, answer *http.Response) (*http.Response, error) { return answer, lose(n) }
					} else {
						w.before = func(n int, _ *http.Request) (*http.Response, error) { return nil, lose(n) }
					}
					data := strings.Repeat("x", size)
					require.NoError(t, blobs.Put(t.Context(), "a/b", strings.NewReader(data)), "call %d", at)
					done = w.calls < at
					got, err := readObject(t, direct, "a/b", size)
					require.NoError(t, err)
					require.True(t, data == got)
				})
			}
		}
	}
}

// The account stops responding from a certain request on. If Put fails with Unavailable, no object was
// stored. If Put cannot know the outcome, it fails with Uncertain.
func TestPut_ReportsATrueOutcomeIfTheAccountDisappears(t *testing.T) {
	uncertain := 0
	for _, size := range sizes {
		for _, isResponseLost := range []bool{false, true} {
			for at, done := 1, false; !done; at++ {
				synctest.Test(t, func(t *testing.T) {
					blobs, w, direct := openWire(t)
					fail := func(n int) error {
						if n >= at {
							return errLost
						}
						return nil
					}
					if isResponseLost {
						w.after = func(n int, _ *http.Request, answer *http.Response) (*http.Response, error) { return answer, fail(n) }
					} else {
						w.before = func(n int, _ *http.Request) (*http.Response, error) { return nil, fail(n) }
					}
					err := blobs.Put(t.Context(), "a/b", strings.NewReader(strings.Repeat("x", size)))
					_, missing := readObject(t, direct, "a/b", size)
					switch domain.KindOf(err) {
					case domain.Unknown:
						require.NoError(t, err)
						require.NoError(t, missing)
						done = true
					case domain.Unavailable:
						require.Equal(t, domain.NotFound, domain.KindOf(missing))
					case domain.Uncertain:
						uncertain++
					default:
						require.NoError(t, err)
					}
				})
			}
		}
	}
	require.Positive(t, uncertain)
}

// Put fails with Conflict if another caller has created the object, even if the 409 responses are lost.
func TestPut_FailsWithConflictForTheObjectOfAnotherCaller(t *testing.T) {
	for _, size := range sizes {
		synctest.Test(t, func(t *testing.T) {
			blobs, w, direct := openWire(t)
			require.NoError(t, direct.Put(t.Context(), "a/b", strings.NewReader("other")))
			w.after = func(_ int, r *http.Request, answer *http.Response) (*http.Response, error) {
				if answer.StatusCode == http.StatusConflict {
					return nil, errLost
				}
				return answer, nil
			}
			require.Equal(t, domain.Conflict, domain.KindOf(blobs.Put(t.Context(), "a/b", strings.NewReader(strings.Repeat("x", size)))))
			got, err := readObject(t, direct, "a/b", 5)
			require.NoError(t, err)
			require.Equal(t, "other", got)
		})
	}
}

// Another writer creates and deletes the object before the blocks are committed, which also deletes the
// staged blocks. Put fails.
func TestPut_FailsIfAnotherWriterHasDeletedItsBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blobs, w, direct := openWire(t)
		w.before = func(_ int, r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("comp") == "blocklist" {
				require.NoError(t, direct.Put(t.Context(), "a/b", strings.NewReader("other")))
				require.NoError(t, direct.Delete(t.Context(), "a/b"))
			}
			return nil, nil
		}
		err := blobs.Put(t.Context(), "a/b", strings.NewReader(strings.Repeat("x", 9<<20)))
		require.Equal(t, domain.Unavailable, domain.KindOf(err), err)
		require.ErrorContains(t, err, "put it again")
	})
}

// Put returns the true outcome even if its context ends while the object is created.
func TestPut_ReportsItsOutcomeAfterItsContextHasEnded(t *testing.T) {
	for _, size := range sizes {
		for _, arrives := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				blobs, w, direct := openWire(t)
				ctx, cancel := context.WithCancel(t.Context())
				w.before = func(_ int, r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodPut && r.URL.Query().Get("comp") != "block" {
						if arrives {
							answer, err := w.next.Do(r)
							require.NoError(t, err)
							require.Equal(t, 201, answer.StatusCode)
						}
						cancel()
						return nil, context.Canceled
					}
					return nil, nil
				}
				data := strings.Repeat("x", size)
				err := blobs.Put(ctx, "a/b", strings.NewReader(data))
				got, missing := readObject(t, direct, "a/b", size)
				if arrives {
					require.NoError(t, err)
					require.True(t, data == got)
					return
				}
				require.Equal(t, domain.Uncertain, domain.KindOf(err))
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, domain.NotFound, domain.KindOf(missing))
			})
		}
	}
}

func TestPut_StopsReadingWhenTheAccountRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blobs, w, _ := openWire(t)
		w.before = func(_ int, r *http.Request) (*http.Response, error) {
			return newErrorResponse(r, 403, "AuthorizationFailure"), nil
		}
		source := &countingReader{}
		err := blobs.Put(t.Context(), "a/b", source)
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.ErrorContains(t, err, "Storage Blob Data Contributor")
		require.Less(t, source.read, 100<<20)
	})
}

type countingReader struct{ read int }

func (c *countingReader) Read(p []byte) (int, error) {
	c.read += len(p)
	return len(p), nil
}

func newErrorResponse(r *http.Request, status int, code string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"X-Ms-Error-Code": {code}, "X-Ms-Request-Id": {"r-1"}}, Body: io.NopCloser(strings.NewReader("")), Request: r,
	}
}

// A breakingBody fails after some bytes.
type breakingBody struct {
	io.ReadCloser
	left int
	err  error
}

func (b *breakingBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func TestBlobStream_ResumesAfterABrokenConnection(t *testing.T) {
	for _, broken := range []error{errLost, io.ErrUnexpectedEOF, io.EOF} {
		synctest.Test(t, func(t *testing.T) {
			blobs, w, direct := openWire(t)
			data := make([]byte, 3<<20)
			_, _ = rand.NewChaCha8([32]byte{}).Read(data)
			require.NoError(t, direct.Put(t.Context(), "a/b", bytes.NewReader(data)))
			w.after = func(n int, _ *http.Request, answer *http.Response) (*http.Response, error) {
				answer.Body = &breakingBody{answer.Body, 100_000 * (n % 3), broken}
				return answer, nil
			}
			got, err := readObject(t, blobs, "a/b", len(data))
			require.NoError(t, err)
			require.True(t, string(data) == got)

			r, err := blobs.Open(t.Context(), repository.Section{Object: "a/b", Offset: 1_000_001, Length: 777_777})
			require.NoError(t, err)
			part, err := io.ReadAll(r)
			require.NoError(t, errors.Join(err, r.Close()))
			require.True(t, bytes.Equal(data[1_000_001:][:777_777], part))
		})
	}
}

func TestBlobStream_FailsAfterThreeConnectionsWithoutData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blobs, w, direct := openWire(t)
		require.NoError(t, direct.Put(t.Context(), "a/b", strings.NewReader(strings.Repeat("x", 1000))))
		w.after = func(n int, _ *http.Request, answer *http.Response) (*http.Response, error) {
			answer.Body = &breakingBody{answer.Body, 10 * (n % 2), errLost}
			if n > 1 {
				answer.Body = &breakingBody{answer.Body, 0, errLost}
			}
			return answer, nil
		}
		got, err := readObject(t, blobs, "a/b", 1000)
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.ErrorContains(t, err, "3 times at byte 10")
		require.Len(t, got, 10)
		require.Equal(t, 3, w.calls)
	})
}

// A stalledBody yields nothing until the attempt ends.
type stalledBody struct {
	io.ReadCloser
	ctx context.Context
}

func (s *stalledBody) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func TestBlobStream_ResumesAfterAStalledConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blobs, w, direct := openWire(t)
		data := strings.Repeat("x", 1000)
		require.NoError(t, direct.Put(t.Context(), "a/b", strings.NewReader(data)))
		w.after = func(n int, r *http.Request, answer *http.Response) (*http.Response, error) {
			if n == 1 {
				answer.Body = &stalledBody{answer.Body, r.Context()}
			}
			return answer, nil
		}
		got, err := readObject(t, blobs, "a/b", 1000)
		require.NoError(t, err)
		require.Equal(t, data, got)
	})
}

// A blob is replaced or removed while it is read. The reader fails with Damaged, and never joins parts
// of two versions.
func TestBlobStream_FailsWithDamagedIfTheBlobChanges(t *testing.T) {
	for what, change := range map[string]func(*testing.T, *content.Blobs){
		"removed": func(t *testing.T, b *content.Blobs) { require.NoError(t, b.Delete(t.Context(), "a/b")) },
		"rewritten": func(t *testing.T, b *content.Blobs) {
			require.NoError(t, b.Delete(t.Context(), "a/b"))
			require.NoError(t, b.Put(t.Context(), "a/b", strings.NewReader(strings.Repeat("y", 1000))))
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				blobs, w, direct := openWire(t)
				require.NoError(t, direct.Put(t.Context(), "a/b", strings.NewReader(strings.Repeat("x", 1000))))
				w.after = func(_ int, _ *http.Request, answer *http.Response) (*http.Response, error) {
					if answer.StatusCode < 300 {
						answer.Body = &breakingBody{answer.Body, 10, errLost}
					}
					return answer, nil
				}
				r, err := blobs.Fetch(t.Context(), "http://embedded.localhost/devstoreaccount1/exchange/a/b")
				require.NoError(t, err)
				defer r.Close()
				_, err = io.ReadFull(r, make([]byte, 10))
				require.NoError(t, err)
				change(t, direct)
				_, err = io.ReadAll(r)
				require.Equal(t, domain.Damaged, domain.KindOf(err), err)
				_, err = r.Read(make([]byte, 1))
				require.Equal(t, domain.Damaged, domain.KindOf(err), "the error is returned again")
			})
		})
	}
}

func TestDelete_SurvivesALostRequest(t *testing.T) {
	for _, lost := range []int{1, 1000} {
		synctest.Test(t, func(t *testing.T) {
			blobs, w, direct := openWire(t)
			require.NoError(t, direct.Put(t.Context(), "a/b", strings.NewReader("x")))
			w.after = func(n int, _ *http.Request, answer *http.Response) (*http.Response, error) {
				if n <= lost {
					return nil, errLost
				}
				return answer, nil
			}
			err := blobs.Delete(t.Context(), "a/b")
			if lost == 1 {
				require.NoError(t, err)
			} else {
				require.Equal(t, domain.Uncertain, domain.KindOf(err))
			}
			_, err = readObject(t, direct, "a/b", 1)
			require.Equal(t, domain.NotFound, domain.KindOf(err))
		})
	}
}
