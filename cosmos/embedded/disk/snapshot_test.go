package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// reopenSnapshot writes a snapshot to a file, opens it, and returns its content.
func reopenSnapshot(t testing.TB, s *Snapshot) map[string]string {
	t.Helper()
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	require.NoError(t, err)
	require.Equal(t, s.Size(), n)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileName), b.Bytes(), 0o600))
	store, err := Open(dir)
	require.NoError(t, err)
	got := readContents(t, store)
	require.NoError(t, store.Close())
	return got
}

func TestSnapshot_HasAllUpdatesAnsweredBeforeIt(t *testing.T) {
	s, err := Open(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, s.Update(t.Context(), putPairs("a", "1")))
	for _, take := range []func() (*Snapshot, error){
		func() (*Snapshot, error) { return TakeSnapshot(t.Context(), s, nil) },
		func() (*Snapshot, error) { return ReadSnapshot(s) },
	} {
		before := readContents(t, s)
		snapshot, err := take()
		require.NoError(t, err)
		require.NoError(t, s.Update(t.Context(), putPairs("a", "2", fmt.Sprint(len(before)), string(make([]byte, 1<<20)))))
		require.Equal(t, before, reopenSnapshot(t, snapshot))
	}
	failure := errors.New("another store")
	_, err = TakeSnapshot(t.Context(), s, func() error { return failure })
	require.ErrorIs(t, err, failure)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = TakeSnapshot(ctx, s, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	_, err = TakeSnapshot(t.Context(), s, nil)
	require.ErrorIs(t, err, ErrClosed)
	_, err = ReadSnapshot(s)
	require.ErrorIs(t, err, ErrClosed)
}

func TestSnapshot_OfAStoreInMemoryIsRefused(t *testing.T) {
	s := NewMemory()
	_, err := TakeSnapshot(t.Context(), s, nil)
	require.ErrorIs(t, err, ErrNoFile)
	_, err = ReadSnapshot(s)
	require.ErrorIs(t, err, ErrNoFile)
	require.NoError(t, s.Close())
}

// A value moves between two stores: it is written to one store before it is deleted from the other. Therefore at least
// one of two snapshots that are taken together must contain the value.
func TestSnapshotsOfOneMoment_ContainAMovedValue(t *testing.T) {
	documents, err := Open(t.TempDir())
	require.NoError(t, err)
	messages, err := Open(t.TempDir())
	require.NoError(t, err)
	const tokens, snapshots = 4, 25
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var moving sync.WaitGroup
	for i := range tokens {
		key := fmt.Sprint("token", i)
		require.NoError(t, documents.Update(t.Context(), putPairs(key, "x")))
		moving.Go(func() {
			for ctx.Err() == nil {
				for _, way := range [][2]Store{{documents, messages}, {messages, documents}} {
					if err := way[1].Update(context.Background(), putPairs(key, "x")); err != nil {
						t.Error(err)
					}
					if err := way[0].Update(context.Background(), func(tx Tx) error { tx.Delete([]byte(key)); return nil }); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range snapshots {
		var m *Snapshot
		d, err := TakeSnapshot(t.Context(), documents, func() (err error) {
			m, err = ReadSnapshot(messages)
			return err
		})
		require.NoError(t, err)
		inDocuments, inMessages := reopenSnapshot(t, d), reopenSnapshot(t, m)
		for i := range tokens {
			key := fmt.Sprint("token", i)
			require.True(t, inDocuments[key] != "" || inMessages[key] != "", "%s is in neither", key)
		}
	}
	stop()
	moving.Wait()
	require.NoError(t, errors.Join(documents.Close(), messages.Close()))
}
