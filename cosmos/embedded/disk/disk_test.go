package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func eachStore(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("memory", func(t *testing.T) {
		s := NewMemory()
		test(t, s)
		require.NoError(t, s.Close())
	})
	t.Run("file", func(t *testing.T) {
		s, err := Open(t.TempDir())
		require.NoError(t, err)
		test(t, s)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close())
	})
	t.Run("unsynced", func(t *testing.T) {
		s, err := OpenUnsynced(t.TempDir(), System{})
		require.NoError(t, err)
		test(t, s)
		require.NoError(t, s.Close())
	})
}

func TestOpenUnsynced_SurvivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenUnsynced(dir, System{})
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Context(), putPairs("a", "1")))
	require.NoError(t, s.Close())
	s, err = Open(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1"}, readContents(t, s))
	require.NoError(t, s.Close())
}

func putPairs(pairs ...string) func(Tx) error {
	return func(tx Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			tx.Put([]byte(pairs[i]), []byte(pairs[i+1]))
		}
		return nil
	}
}

func readContents(t testing.TB, s Store) map[string]string {
	t.Helper()
	got := map[string]string{}
	require.NoError(t, s.View(func(r Reader) error {
		r.Scan(nil, []byte{0xff}, func(k, v []byte) bool {
			got[string(k)] = string(v)
			return true
		})
		return nil
	}))
	return got
}

func TestUpdate_ThatFailsChangesNothingAndLeavesOthersAlone(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		wrong := errors.New("wrong")
		var updates sync.WaitGroup
		var failed atomic.Int32
		for i := range 200 {
			updates.Go(func() {
				err := s.Update(context.Background(), func(tx Tx) error {
					key := fmt.Appendf(nil, "k%03d", i)
					tx.Put(key, []byte("v"))
					if i%3 == 0 {
						return wrong
					}
					return nil
				})
				if i%3 == 0 {
					if errors.Is(err, wrong) {
						failed.Add(1)
					}
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		updates.Wait()
		require.EqualValues(t, 67, failed.Load())
		require.Len(t, readContents(t, s), 133)
	})
}

func TestUpdate_ReturnsAPanicAsItsError(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		require.ErrorContains(t, s.Update(t.Context(), func(tx Tx) error { tx.Put([]byte("a"), nil); panic("oh") }), "oh")
		require.NoError(t, s.Update(t.Context(), putPairs("b", "1")))
		require.Equal(t, map[string]string{"b": "1"}, readContents(t, s))
	})
}

// TestUpdates_GiveTheStateOfAMap executes random updates and reads on both stores and on a map, and compares the
// results.
func TestUpdates_GiveTheStateOfAMap(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		model := map[string]string{}
		rapid.Check(t, func(r *rapid.T) {
			key := rapid.StringMatching(`[a-c][a-e]`)
			next := maps.Clone(model)
			fail := rapid.Bool().Draw(r, "fail")
			type step struct {
				kind     int
				key, end string
			}
			steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
				return step{rapid.IntRange(0, 3).Draw(r, "kind"), key.Draw(r, "key"), key.Draw(r, "end")}
			}), 1, 12).Draw(r, "steps")
			err := s.Update(context.Background(), func(tx Tx) error {
				for i, st := range steps {
					switch st.kind {
					case 0:
						tx.Put([]byte(st.key), fmt.Append(nil, i))
						next[st.key] = fmt.Sprint(i)
					case 1:
						tx.Delete([]byte(st.key))
						delete(next, st.key)
					case 2:
						v, ok := next[st.key]
						if got := tx.Get([]byte(st.key)); ok != (got != nil) || string(got) != v {
							return fmt.Errorf("get %s: %q, want %q", st.key, got, v)
						}
					case 3:
						if err := scanLike(tx, next, st.key, st.end); err != nil {
							return err
						}
					}
				}
				if fail {
					return context.Canceled
				}
				return nil
			})
			if fail {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.NoError(t, err)
				model = next
			}
			require.Equal(t, model, readContents(t, s))
			from, to := key.Draw(r, "key"), key.Draw(r, "end")
			require.NoError(t, s.View(func(reader Reader) error {
				return errors.Join(scanLike(reader, model, from, to), scanBackLike(reader, model, from, to))
			}))
		})
	})
}

func scanLike(tx State, model map[string]string, from, to string) error {
	var got, want []string
	tx.Scan([]byte(from), []byte(to), func(k, v []byte) bool {
		got = append(got, string(k)+"="+string(v))
		return true
	})
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if k >= from && k < to {
			want = append(want, k+"="+model[k])
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("scan: %v, want %v", got, want)
	}
	return nil
}

func scanBackLike(r Reader, model map[string]string, from, to string) error {
	var got, want []string
	r.ScanBack([]byte(from), []byte(to), func(k, v []byte) bool {
		got = append(got, string(k)+"="+string(v))
		return true
	})
	r.Scan([]byte(from), []byte(to), func(k, v []byte) bool {
		want = append(want, string(k)+"="+string(v))
		return true
	})
	slices.Reverse(want)
	if !slices.Equal(got, want) {
		return fmt.Errorf("scan back: %v, want %v", got, want)
	}
	return nil
}

// TestScanBack_CrossesPages scans more pairs than fit on a page of the file.
func TestScanBack_CrossesPages(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		const pairs = 5000
		require.NoError(t, s.Update(t.Context(), func(tx Tx) error {
			for i := range pairs {
				tx.Put(fmt.Appendf(nil, "%05d", i), bytes.Repeat([]byte("v"), i%90))
			}
			return nil
		}))
		for _, tc := range []struct {
			from, to    string
			first, last int
		}{{"", "~", 0, 4999}, {"00000", "04999", 0, 4998}, {"01234", "01235", 1234, 1234}, {"012345", "03", 1235, 2999}, {"04999x", "~", 0, -1}, {"1", "2", 0, -1}, {"03", "02", 0, -1}} {
			var got []string
			require.NoError(t, s.View(func(r Reader) error {
				r.ScanBack([]byte(tc.from), []byte(tc.to), func(k, _ []byte) bool {
					got = append(got, string(k))
					return true
				})
				return nil
			}))
			want := []string(nil)
			for i := tc.last; i >= tc.first; i-- {
				want = append(want, fmt.Sprintf("%05d", i))
			}
			require.Equal(t, want, got, "%s to %s", tc.from, tc.to)
		}
		seen := 0
		require.NoError(t, s.View(func(r Reader) error {
			r.ScanBack(nil, []byte("~"), func(_, _ []byte) bool { seen++; return seen < 3 })
			return nil
		}))
		require.Equal(t, 3, seen, "visit ends the scan")
	})
}

func TestOnCommit_RunsInTheOrderOfTheUpdates(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		const writers, rounds = 8, 50
		var order []int // order of the OnCommit calls; no lock, because the calls are serial
		next := 0       // number of the next update; no lock, because updates are serial
		failed := errors.New("failed")
		var running sync.WaitGroup
		for range writers {
			running.Go(func() {
				for i := range rounds {
					mine := 0
					err := s.Update(context.Background(), func(tx Tx) error {
						tx.OnCommit(func() { order = append(order, mine) })
						if i%5 == 4 {
							return failed
						}
						mine = next
						next++
						tx.Put(fmt.Append(nil, mine), nil)
						return nil
					})
					if err != nil && !errors.Is(err, failed) {
						t.Error(err)
					}
				}
			})
		}
		running.Wait()
		require.Len(t, order, writers*rounds*4/5)
		require.True(t, slices.IsSorted(order), order)
	})
}

// If an update is committed although its caller stopped waiting, OnCommit is called.
func TestOnCommit_RunsAlthoughTheCallerStoppedWaiting(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	calls := 0
	err = s.Update(ctx, func(tx Tx) error {
		leave()
		tx.OnCommit(func() { calls++ })
		tx.Put([]byte("a"), []byte("1"))
		return nil
	})
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, s.Close()) // Close waits until the update is committed
	require.Equal(t, 1, calls)
}

func TestScan_StopsWhenVisitReturnsFalse(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		require.NoError(t, s.Update(t.Context(), putPairs("a", "1", "c", "3")))
		require.NoError(t, s.Update(t.Context(), func(tx Tx) error {
			tx.Put([]byte("b"), []byte("2"))
			for stop := 1; stop <= 3; stop++ {
				seen := 0
				tx.Scan([]byte("a"), []byte("z"), func(_, _ []byte) bool { seen++; return seen < stop })
				if seen != stop {
					return fmt.Errorf("saw %d, want %d", seen, stop)
				}
			}
			return nil
		}))
	})
}

func TestUpdate_FailsAfterAFailedCommit(t *testing.T) {
	dir := t.TempDir()
	s, err := openStore(dir, 32<<20, System{}, datafolder.Claim{}) // the disk becomes full after a few documents
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Context(), putPairs("first", "1")))
	large := bytes.Repeat([]byte("x"), 4<<20)
	for i := 0; err == nil; i++ {
		err = s.Update(t.Context(), func(tx Tx) error { tx.Put(fmt.Append(nil, i), large); return nil })
		require.Less(t, i, 100)
	}
	require.ErrorIs(t, err, ErrBroken)
	require.ErrorIs(t, err, ErrFull)
	err = s.Update(t.Context(), putPairs("small", "1"))
	require.ErrorIs(t, err, ErrBroken, "even one that would fit")
	require.NotContains(t, readContents(t, s), "small", "but reading goes on")
	require.NoError(t, s.Close())

	s, err = Open(dir)
	require.NoError(t, err)
	require.Equal(t, "1", readContents(t, s)["first"])
	require.NoError(t, s.Update(t.Context(), putPairs("small", "1")))
	require.NoError(t, s.Close())
}

func TestUpdateAnswers_WaitForTheCommit(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	f := s.(*fileStore)
	taken := errors.New("taken")
	later := &queuedUpdate{ctx: t.Context(), answer: make(chan error, 1), fn: func(tx Tx) error {
		if tx.Get([]byte("name")) != nil {
			return taken
		}
		return nil
	}}
	winner := &queuedUpdate{ctx: t.Context(), answer: make(chan error, 1), fn: putPairs("name", "first")}
	last := &queuedUpdate{ctx: t.Context(), answer: make(chan error, 1), fn: func(Tx) error {
		require.Empty(t, later.answer, "the name is taken by what nobody can read yet")
		return nil
	}}
	require.NoError(t, f.commitUpdates([]*queuedUpdate{winner, later, last}))
	require.NoError(t, <-winner.answer)
	require.ErrorIs(t, <-later.answer, taken)
	require.NoError(t, <-last.answer)
	require.NoError(t, s.Close())
}

func TestUpdateAnswers_ReportAFailedCommit(t *testing.T) {
	s, err := openStore(t.TempDir(), 1<<16, System{}, datafolder.Claim{})
	require.NoError(t, err)
	f := s.(*fileStore)
	tooMuch := &queuedUpdate{ctx: t.Context(), answer: make(chan error, 1), fn: putPairs("name", string(make([]byte, 1<<20)))}
	later := &queuedUpdate{ctx: t.Context(), answer: make(chan error, 1), fn: func(Tx) error { return errors.New("taken") }}
	require.ErrorIs(t, f.commitUpdates([]*queuedUpdate{tooMuch, later}), ErrBroken)
	require.ErrorIs(t, <-tooMuch.answer, ErrBroken)
	require.ErrorIs(t, <-later.answer, ErrBroken)
	require.NoError(t, s.Close())
}

func TestClose_WaitsForUpdatesAndRefusesNewOnes(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		var updates sync.WaitGroup
		var done atomic.Int32
		for i := range 50 {
			updates.Go(func() {
				err := s.Update(context.Background(), putPairs(fmt.Sprint(i), "v"))
				if err == nil {
					done.Add(1)
				} else if !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			})
		}
		require.NoError(t, s.Close())
		updates.Wait()
		require.ErrorIs(t, s.Update(t.Context(), putPairs("late", "1")), ErrClosed)
		require.ErrorIs(t, s.View(func(Reader) error { return nil }), ErrClosed)
	})
}

func TestUpdate_IsNotStartedAfterItsContextEnded(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Update(ctx, putPairs("a", "1")), context.Canceled)
		require.NoError(t, s.Update(t.Context(), putPairs("b", "1")))
		require.Equal(t, map[string]string{"b": "1"}, readContents(t, s))
	})
}

func TestMemory_KeepsItsLastStates(t *testing.T) {
	s := NewMemory()
	for i := range 100 {
		require.NoError(t, s.Update(t.Context(), putPairs("n", fmt.Sprint(i))))
	}
	for back, want := range map[int]string{0: "99", 1: "98", 64: "35", 1000: "35", -1: "99"} {
		require.NoError(t, s.ViewPast(back, func(r Reader) error {
			require.Equal(t, want, string(r.Get([]byte("n"))), "%d back", back)
			return nil
		}))
	}
	require.NoError(t, s.Close())
}
