package disk_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/disk"
)

// newFormat returns a format of a test engine that stores letters. Each step to the next format doubles every stored
// letter.
func newFormat(number uint64, version string) *disk.Format {
	return &disk.Format{
		Number: number, Version: version, Key: []byte("format"),
		IsNew: func(s disk.State) bool { return s.Get([]byte("format")) == nil },
	}
}

// doublingStep returns a step that doubles two letters in each part. If failAt is not 0, part number failAt fails.
func doublingStep(failAt int, parts *int) disk.Step {
	return func(tx disk.Tx, position []byte) ([]byte, error) {
		*parts++
		if *parts == failAt {
			return nil, errors.New("the power is gone")
		}
		letters := make(map[string]string)
		from := append([]byte("letter"), position...)
		var next []byte
		tx.Scan(from, []byte("lettes"), func(key, value []byte) bool {
			if len(letters) == 2 {
				next = append(next, key[len("letter"):]...)
				return false
			}
			letters[string(key)] = string(value)
			return true
		})
		for key, letter := range letters {
			tx.Put([]byte(key), []byte(letter+letter))
		}
		return next, nil
	}
}

func putPairs(t *testing.T, store disk.Store, key, value string) {
	t.Helper()
	require.NoError(t, store.Update(t.Context(), func(tx disk.Tx) error {
		tx.Put([]byte(key), []byte(value))
		return nil
	}))
}

func readValue(t *testing.T, store disk.Store, key string) (value string) {
	t.Helper()
	require.NoError(t, store.View(func(r disk.Reader) error {
		value = string(r.Get([]byte(key)))
		return nil
	}))
	return value
}

func TestPrepare_ContinuesAfterAFailedStep(t *testing.T) {
	for failAt := range 5 {
		t.Run(fmt.Sprint("fails at part ", failAt), func(t *testing.T) {
			store := disk.NewMemory()
			defer store.Close()
			require.NoError(t, newFormat(1, "v1").Prepare(t.Context(), store))
			for _, letter := range []string{"a", "b", "c", "d", "e"} {
				putPairs(t, store, "letter"+letter, letter)
			}
			parts := 0
			next := newFormat(2, "v2")
			next.Steps = map[uint64]disk.Step{1: doublingStep(failAt, &parts)}
			if err := next.Prepare(t.Context(), store); failAt > 0 && failAt < 4 {
				require.EqualError(t, err, "bring the store from format 1 to 2: the power is gone")
				require.NoError(t, next.Prepare(t.Context(), store))
				require.Equal(t, 4, parts, "no part runs twice")
			} else {
				require.NoError(t, err)
			}
			for _, letter := range []string{"a", "b", "c", "d", "e"} {
				require.Equal(t, letter+letter, readValue(t, store, "letter"+letter))
			}
			require.NoError(t, next.Prepare(t.Context(), store), "nothing to do")
			err := newFormat(1, "v1").Prepare(t.Context(), store)
			require.ErrorIs(t, err, disk.ErrFormat)
			require.ErrorContains(t, err, `it has format 2, and this version reads 1; version "v2" wrote it, so use that one or a newer one`)
		})
	}
}

func TestPrepare_RefusesAFormatWithoutAStep(t *testing.T) {
	store := disk.NewMemory()
	defer store.Close()
	require.NoError(t, newFormat(1, "").Prepare(t.Context(), store))
	err := newFormat(3, "v3").Prepare(t.Context(), store)
	require.ErrorIs(t, err, disk.ErrFormat)
	require.ErrorContains(t, err, "it has format 1, and this version reads 3")
}

func TestPrepare_RunsTheStepsOfSeveralFormats(t *testing.T) {
	store := disk.NewMemory()
	defer store.Close()
	require.NoError(t, newFormat(1, "v1").Prepare(t.Context(), store))
	putPairs(t, store, "lettera", "a")
	parts := 0
	last := newFormat(3, "v3")
	last.Steps = map[uint64]disk.Step{1: doublingStep(0, &parts), 2: doublingStep(0, &parts)}
	require.NoError(t, last.Prepare(t.Context(), store))
	require.Equal(t, "aaaa", readValue(t, store, "lettera"))
}
